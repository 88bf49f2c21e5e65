build-gpu/gpu/common/lib/display.o: common/lib/display.c common/lib/display.h \
 common/lib/../file.h common/lib/image.h common/lib/../options.h \
 common/lib/window.h
common/lib/display.h:
common/lib/../file.h:
common/lib/image.h:
common/lib/../options.h:
common/lib/window.h:

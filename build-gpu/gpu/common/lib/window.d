build-gpu/gpu/common/lib/window.o: common/lib/window.c \
 common/lib/../options.h common/lib/window.h common/lib/display.h
common/lib/../options.h:
common/lib/window.h:
common/lib/display.h:

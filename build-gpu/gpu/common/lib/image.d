build-gpu/gpu/common/lib/image.o: common/lib/image.c common/lib/../file.h \
 common/lib/image.h common/lib/../options.h
common/lib/../file.h:
common/lib/image.h:
common/lib/../options.h:

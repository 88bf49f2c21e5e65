build-gpu/gpu/common/lib/file.o: common/lib/file.c common/lib/../file.h \
 common/lib/../options.h
common/lib/../file.h:
common/lib/../options.h:

build-gpu/gpu/common/lib/thread.o: common/lib/thread.c \
 common/lib/../options.h common/lib/../thread.h
common/lib/../options.h:
common/lib/../thread.h:

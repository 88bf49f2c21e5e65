build-gpu/gpu/common/lib/random.o: common/lib/random.c \
 common/lib/../options.h common/lib/../random.h
common/lib/../options.h:
common/lib/../random.h:

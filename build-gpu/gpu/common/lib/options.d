build-gpu/gpu/common/lib/options.o: common/lib/options.c \
 common/lib/../options.h
common/lib/../options.h:

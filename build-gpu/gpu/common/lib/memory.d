build-gpu/gpu/common/lib/memory.o: common/lib/memory.c \
 common/lib/../options.h common/lib/memory.h
common/lib/../options.h:
common/lib/memory.h:

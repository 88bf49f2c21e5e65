build-gpu/gpu/common/lib/check.o: common/lib/check.c common/lib/../check.h \
 common/lib/../options.h
common/lib/../check.h:
common/lib/../options.h:

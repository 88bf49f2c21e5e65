build-gpu/gpu/common/lib/gl_context.o: common/lib/gl_context.c \
 common/lib/gl_context.h common/lib/display.h common/lib/../options.h
common/lib/gl_context.h:
common/lib/display.h:
common/lib/../options.h:

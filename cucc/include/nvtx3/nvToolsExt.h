// SPDX-License-Identifier: MIT
// NVTX: marks and ranges for profilers. No profiler listens here, so the functions do nothing. For C and C++.
#pragma once

#include <stdint.h>

#define NVTX_VERSION                  3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

typedef uint64_t nvtxRangeId_t;

typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;
typedef enum nvtxMessageType_t { NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1 } nvtxMessageType_t;
typedef enum nvtxPayloadType_t {
    NVTX_PAYLOAD_UNKNOWN = 0,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
    NVTX_PAYLOAD_TYPE_INT64 = 2,
    NVTX_PAYLOAD_TYPE_DOUBLE = 3,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
    NVTX_PAYLOAD_TYPE_INT32 = 5,
    NVTX_PAYLOAD_TYPE_FLOAT = 6
} nvtxPayloadType_t;

typedef union nvtxMessageValue_t {
    const char *ascii;
} nvtxMessageValue_t;

typedef struct nvtxEventAttributes_v2 {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union payload_t {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_v2;
typedef struct nvtxEventAttributes_v2 nvtxEventAttributes_t;

#define NVTX_NO_PUSH_POP_TRACKING (-2)

// A function that does nothing but return a value
#define NVTX_FUNCTION(T, name, parameters, value)                                                            \
    static inline T name parameters {                                                                        \
        return value;                                                                                        \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
NVTX_FUNCTION(void, nvtxMarkEx, (const nvtxEventAttributes_t *attributes), )
NVTX_FUNCTION(void, nvtxMarkA, (const char *message), )
NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStartEx, (const nvtxEventAttributes_t *attributes), 0)
NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStartA, (const char *message), 0)
NVTX_FUNCTION(void, nvtxRangeEnd, (nvtxRangeId_t id), )
NVTX_FUNCTION(int, nvtxRangePushEx, (const nvtxEventAttributes_t *attributes), NVTX_NO_PUSH_POP_TRACKING)
NVTX_FUNCTION(int, nvtxRangePushA, (const char *message), NVTX_NO_PUSH_POP_TRACKING)
NVTX_FUNCTION(int, nvtxRangePop, (void), NVTX_NO_PUSH_POP_TRACKING)
NVTX_FUNCTION(void, nvtxNameOsThreadA, (uint32_t thread, const char *name), )
#pragma GCC diagnostic pop
#undef NVTX_FUNCTION

#define nvtxMark         nvtxMarkA
#define nvtxRangeStart   nvtxRangeStartA
#define nvtxRangePush    nvtxRangePushA
#define nvtxNameOsThread nvtxNameOsThreadA

// SPDX-License-Identifier: MIT
// NVTX: marks and ranges for profilers. No profiler listens here, so the functions do nothing. For C and C++.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NVTX_VERSION                  3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;

typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;
typedef enum nvtxMessageType_t {
    NVTX_MESSAGE_UNKNOWN = 0,
    NVTX_MESSAGE_TYPE_ASCII = 1,
    NVTX_MESSAGE_TYPE_UNICODE = 2,
    NVTX_MESSAGE_TYPE_REGISTERED = 3
} nvtxMessageType_t;
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
    const wchar_t *unicode;
    nvtxStringHandle_t registered;
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
NVTX_FUNCTION(void, nvtxInitialize, (const void *reserved), )
NVTX_FUNCTION(void, nvtxMarkEx, (const nvtxEventAttributes_t *attributes), )
NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStartEx, (const nvtxEventAttributes_t *attributes), 0)
NVTX_FUNCTION(void, nvtxRangeEnd, (nvtxRangeId_t id), )
NVTX_FUNCTION(int, nvtxRangePushEx, (const nvtxEventAttributes_t *attributes), NVTX_NO_PUSH_POP_TRACKING)
NVTX_FUNCTION(int, nvtxRangePop, (void), NVTX_NO_PUSH_POP_TRACKING)
NVTX_FUNCTION(void, nvtxDomainMarkEx, (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes), )
NVTX_FUNCTION(nvtxRangeId_t, nvtxDomainRangeStartEx,
              (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes), 0)
NVTX_FUNCTION(void, nvtxDomainRangeEnd, (nvtxDomainHandle_t domain, nvtxRangeId_t id), )
NVTX_FUNCTION(int, nvtxDomainRangePushEx,
              (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes), NVTX_NO_PUSH_POP_TRACKING)
NVTX_FUNCTION(int, nvtxDomainRangePop, (nvtxDomainHandle_t domain), NVTX_NO_PUSH_POP_TRACKING)
// The functions with a text, which is of char (A) or of wchar_t (W)
#define NVTX_TEXT_FUNCTIONS(A, Char)                                                                         \
    NVTX_FUNCTION(void, nvtxMark##A, (const Char *message), )                                                \
    NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStart##A, (const Char *message), 0)                                \
    NVTX_FUNCTION(int, nvtxRangePush##A, (const Char *message), NVTX_NO_PUSH_POP_TRACKING)                   \
    NVTX_FUNCTION(void, nvtxNameOsThread##A, (uint32_t thread, const Char *name), )                          \
    NVTX_FUNCTION(nvtxDomainHandle_t, nvtxDomainCreate##A, (const Char *name), NULL)                         \
    NVTX_FUNCTION(nvtxStringHandle_t, nvtxDomainRegisterString##A,                                           \
                  (nvtxDomainHandle_t domain, const Char *text), NULL)                                       \
    NVTX_FUNCTION(void, nvtxNameCategory##A, (uint32_t category, const Char *name), )                        \
    NVTX_FUNCTION(void, nvtxDomainNameCategory##A,                                                           \
                  (nvtxDomainHandle_t domain, uint32_t category, const Char *name), )
NVTX_TEXT_FUNCTIONS(A, char)
NVTX_TEXT_FUNCTIONS(W, wchar_t)
#undef NVTX_TEXT_FUNCTIONS
NVTX_FUNCTION(void, nvtxDomainDestroy, (nvtxDomainHandle_t domain), )
#pragma GCC diagnostic pop
#undef NVTX_FUNCTION

#define nvtxMark                 nvtxMarkA
#define nvtxRangeStart           nvtxRangeStartA
#define nvtxRangePush            nvtxRangePushA
#define nvtxNameCategory         nvtxNameCategoryA
#define nvtxNameOsThread         nvtxNameOsThreadA
#define nvtxDomainCreate         nvtxDomainCreateA
#define nvtxDomainRegisterString nvtxDomainRegisterStringA
#define nvtxDomainNameCategory   nvtxDomainNameCategoryA

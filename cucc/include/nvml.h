// SPDX-License-Identifier: MIT
// NVML: number and names of the devices, for C and C++. Link with -lnvidia-ml. There are no sensors: their
// functions return NVML_ERROR_NOT_SUPPORTED. Devices are numbered as by the runtime.
#pragma once
#include <string.h>
#include "cuda_cpu/api.h"

#define NVML_DEVICE_NAME_BUFFER_SIZE 64

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;
typedef enum { NVML_TEMPERATURE_GPU = 0 } nvmlTemperatureSensors_t;
typedef enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO } nvmlClockType_t;
typedef struct nvmlDevice_st *nvmlDevice_t; // the number of the device and 1
typedef struct {
    unsigned int gpu, memory; // per cent
} nvmlUtilization_t;

static inline nvmlReturn_t nvmlInit_v2(void) {
    return NVML_SUCCESS;
}
static inline nvmlReturn_t nvmlInit(void) {
    return NVML_SUCCESS;
}
static inline nvmlReturn_t nvmlShutdown(void) {
    return NVML_SUCCESS;
}
static inline const char *nvmlErrorString(nvmlReturn_t error) {
    return error == NVML_SUCCESS                   ? "Success"
           : error == NVML_ERROR_INVALID_ARGUMENT  ? "Invalid Argument"
           : error == NVML_ERROR_NOT_SUPPORTED     ? "Not Supported"
           : error == NVML_ERROR_INSUFFICIENT_SIZE ? "Insufficient Size"
                                                   : "Unknown Error";
}
static inline nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    int devices = 0;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (cudaGetDeviceCount(&devices) != cudaSuccess)
        devices = 0;
    *count = (unsigned int)devices;
    return NVML_SUCCESS;
}
static inline nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    unsigned int count;
    if (!device || nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS || index >= count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)((size_t)index + 1);
    return NVML_SUCCESS;
}
static inline nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    struct cudaDeviceProp p;
    if (!device || !name || cudaGetDeviceProperties(&p, (int)((size_t)device - 1)) != cudaSuccess)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(p.name) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(name, p.name);
    return NVML_SUCCESS;
}
#define nvmlDeviceGetCount         nvmlDeviceGetCount_v2
#define nvmlDeviceGetHandleByIndex nvmlDeviceGetHandleByIndex_v2

// There are no sensors, clocks and counters.
#define CUDA_CPU_NO_SENSOR(name, ...)                                                                        \
    static inline nvmlReturn_t name(nvmlDevice_t device, __VA_ARGS__) {                                      \
        return device && value ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;                     \
    }
CUDA_CPU_NO_SENSOR(nvmlDeviceGetUtilizationRates, nvmlUtilization_t *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetTemperature, nvmlTemperatureSensors_t, unsigned int *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetPowerUsage, unsigned int *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetPowerManagementLimit, unsigned int *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetTotalEnergyConsumption, unsigned long long *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetFanSpeed, unsigned int *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetClockInfo, nvmlClockType_t, unsigned int *value)
CUDA_CPU_NO_SENSOR(nvmlDeviceGetMaxClockInfo, nvmlClockType_t, unsigned int *value)

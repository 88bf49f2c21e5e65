// SPDX-License-Identifier: MIT
// The Vulkan functions that are not part of the lesson: error check, instance, device and queue, buffers and
// memory allocation.
#ifndef CHAPTER08_VULKAN_DEVICE_H
#define CHAPTER08_VULKAN_DEVICE_H

#include <unistd.h>
#include <string>
#include <vector>
#include <vulkan/vulkan.h>
#include "../common/book.h"

// Checks the result of a Vulkan call, as HANDLE_ERROR does for CUDA.
#define HANDLE_VULKAN(...) handle_vulkan((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

static inline const char *vulkan_result(VkResult result) {
    switch (result) {
    case VK_TIMEOUT:
        return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
        return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
        return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_TOO_MANY_OBJECTS:
        return "VK_ERROR_TOO_MANY_OBJECTS";
    default:
        return "an error of Vulkan";
    }
}

static inline void handle_vulkan(VkResult result, const char *call, const char *file, int line) {
    if (result != VK_SUCCESS)
        quit_line(EXIT_FAILURE, "%s:%d: %s: %s (%d)", file, line, call, vulkan_result(result), result);
}

// A Vulkan device. Commands are recorded into command buffers, which are allocated from the command pool, and
// submitted to the queue. `family` is the index of the queue family: the queues with the same capabilities.
struct VulkanDevice {
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    uint32_t family;
    VkQueue queue;
    VkCommandPool pool;
    // Functions of extensions, which libvulkan does not export: vkGetDeviceProcAddr returns their addresses.
    PFN_vkGetMemoryFdKHR get_memory_fd;
    PFN_vkGetSemaphoreFdKHR get_semaphore_fd;
};

static const char *const vulkan_extensions[] = {"VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd"};

// Returns the Vulkan device with the UUID of the CUDA device: CUDA and Vulkan report the same UUID for a GPU.
// If there is none, ends the program with one line that names the devices found.
static inline VkPhysicalDevice find_gpu(VkInstance instance, const cudaDeviceProp &wanted) {
    uint32_t count = 0;
    HANDLE_VULKAN(vkEnumeratePhysicalDevices(instance, &count, NULL));
    std::vector<VkPhysicalDevice> gpus(count);
    HANDLE_VULKAN(vkEnumeratePhysicalDevices(instance, &count, gpus.data()));
    std::string others;
    for (VkPhysicalDevice gpu : gpus) {
        VkPhysicalDeviceIDProperties id = {};
        id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
        VkPhysicalDeviceProperties2 properties = {};
        properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
        properties.pNext = &id;
        vkGetPhysicalDeviceProperties(gpu, &properties.properties);
        if (properties.properties.apiVersion >= VK_API_VERSION_1_2) { // the first with timeline semaphores
            vkGetPhysicalDeviceProperties2(gpu, &properties);
            if (memcmp(id.deviceUUID, wanted.uuid.bytes, VK_UUID_SIZE) == 0)
                return gpu;
        }
        others += std::string(others.empty() ? "" : ", ") + properties.properties.deviceName;
    }
    quit(EXIT_WAIVED, "needs a driver of Vulkan 1.2 for the CUDA device %s, found %s", wanted.name,
         others.empty() ? "no device of Vulkan" : others.c_str());
}

// Ends the program with one line unless the driver can export buffer memory and timeline semaphores as file
// descriptors.
static inline void require_export(VkPhysicalDevice gpu, const char *name) {
    uint32_t count = 0;
    HANDLE_VULKAN(vkEnumerateDeviceExtensionProperties(gpu, NULL, &count, NULL));
    std::vector<VkExtensionProperties> all(count);
    HANDLE_VULKAN(vkEnumerateDeviceExtensionProperties(gpu, NULL, &count, all.data()));
    for (const char *extension : vulkan_extensions) {
        bool found = false;
        for (const VkExtensionProperties &one : all)
            found = found || strcmp(one.extensionName, extension) == 0;
        if (!found)
            quit(EXIT_WAIVED, "needs %s, which the Vulkan driver of %s lacks", extension, name);
    }

    VkPhysicalDeviceExternalBufferInfo buffer = {};
    buffer.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
    buffer.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    buffer.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkExternalBufferProperties memory = {};
    memory.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
    vkGetPhysicalDeviceExternalBufferProperties(gpu, &buffer, &memory);
    VkExternalMemoryFeatureFlags features = memory.externalMemoryProperties.externalMemoryFeatures;
    if (!(features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) ||
        features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT)
        quit(EXIT_WAIVED, "needs memory that Vulkan can export, which the driver of %s does not have", name);

    VkSemaphoreTypeCreateInfo timeline = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, NULL,
                                          VK_SEMAPHORE_TYPE_TIMELINE, 0};
    VkPhysicalDeviceExternalSemaphoreInfo semaphore = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO, &timeline,
        VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalSemaphoreProperties found = {};
    found.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES;
    vkGetPhysicalDeviceExternalSemaphoreProperties(gpu, &semaphore, &found);
    if (!(found.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT))
        quit(EXIT_WAIVED,
             "needs timeline semaphores that Vulkan can export, which the driver of %s does not have", name);
}

// Returns the first queue family that can copy. Queues for graphics or compute can copy too.
static inline uint32_t find_family(VkPhysicalDevice gpu) {
    uint32_t count = 0, family = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(gpu, &count, NULL);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(gpu, &count, families.data());
    const VkQueueFlags can_copy = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    while (family < count && !(families[family].queueFlags & can_copy))
        family++;
    if (family == count)
        quit(EXIT_WAIVED, "needs a queue of Vulkan that can copy, found none");
    return family;
}

// If the program exits early, submitted commands may wait for a semaphore that is never signaled. The exit
// handlers of the drivers wait for these commands, which would be a deadlock. So _exit() skips the handlers.
static bool vulkan_is_open;

static inline void skip_drivers_at_exit(int status, void *) {
    if (!vulkan_is_open)
        return;
    fflush(NULL);
    _exit(status);
}

// Creates a Vulkan device for the GPU of this CUDA device. Ends the program with one line and EXIT_WAIVED if
// Vulkan does not have this GPU, or if memory and timeline semaphores cannot be shared.
static inline VulkanDevice open_vulkan(int cuda_device) {
    cudaDeviceProp cuda;
    HANDLE_ERROR(cudaGetDeviceProperties(&cuda, cuda_device));
    if (!cuda.timelineSemaphoreInteropSupported)
        quit(EXIT_WAIVED, "needs a CUDA device that can use timeline semaphores of Vulkan, %s cannot%s",
             cuda.name, CPU_BACKEND ? " (CPU back end)" : "");

    VulkanDevice vulkan = {};
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo instance = {};
    instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance.pApplicationInfo = &application;
    VkResult result = vkCreateInstance(&instance, NULL, &vulkan.instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        quit(EXIT_WAIVED, "needs a driver of Vulkan, found none (docs/building.md, Containers)");
    HANDLE_VULKAN(result);
    vulkan.gpu = find_gpu(vulkan.instance, cuda);
    require_export(vulkan.gpu, cuda.name);

    vulkan.family = find_family(vulkan.gpu);
    const float priority = 1;
    VkDeviceQueueCreateInfo queue = {};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = vulkan.family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, NULL, VK_TRUE};
    VkDeviceCreateInfo device = {};
    device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device.pNext = &timeline;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    device.enabledExtensionCount = 2;
    device.ppEnabledExtensionNames = vulkan_extensions;
    HANDLE_VULKAN(vkCreateDevice(vulkan.gpu, &device, NULL, &vulkan.device));
    vulkan_is_open = true;
    on_exit(skip_drivers_at_exit, NULL); // called first: exit handlers run in reverse order
    vkGetDeviceQueue(vulkan.device, vulkan.family, 0, &vulkan.queue);
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL, 0, vulkan.family};
    HANDLE_VULKAN(vkCreateCommandPool(vulkan.device, &pool, NULL, &vulkan.pool));

    vulkan.get_memory_fd = (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(vulkan.device, "vkGetMemoryFdKHR");
    vulkan.get_semaphore_fd =
        (PFN_vkGetSemaphoreFdKHR)vkGetDeviceProcAddr(vulkan.device, "vkGetSemaphoreFdKHR");
    return vulkan;
}

// Command buffers are freed with their pool.
static inline void close_vulkan(const VulkanDevice &vulkan) {
    vulkan_is_open = false;
    vkDestroyCommandPool(vulkan.device, vulkan.pool, NULL);
    vkDestroyDevice(vulkan.device, NULL);
    vkDestroyInstance(vulkan.instance, NULL);
}

struct VulkanBuffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize allocated; // bytes of memory, which may be more than the size of the buffer
};

// Creates a buffer without memory. `next` is the structure for pNext of VkBufferCreateInfo, or NULL.
static inline VulkanBuffer create_buffer(const VulkanDevice &vulkan, VkDeviceSize bytes,
                                         VkBufferUsageFlags usage, const void *next) {
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.pNext = next;
    info.size = bytes;
    info.usage = usage;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE; // used by one queue family at a time
    VulkanBuffer result = {};
    HANDLE_VULKAN(vkCreateBuffer(vulkan.device, &info, NULL, &result.buffer));
    return result;
}

// Allocates memory for a buffer and binds it. The memory type has the required properties, and the preferred
// ones too if the device has such a type. `next` is the structure for pNext of VkMemoryAllocateInfo, or NULL.
static inline void allocate_memory(const VulkanDevice &vulkan, VulkanBuffer *buffer,
                                   VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                                   const void *next) {
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(vulkan.device, buffer->buffer, &needs);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(vulkan.gpu, &memory);
    uint32_t type = memory.memoryTypeCount;
    for (VkMemoryPropertyFlags wanted : {required | preferred, required})
        for (uint32_t i = 0; type == memory.memoryTypeCount && i < memory.memoryTypeCount; i++)
            if ((needs.memoryTypeBits >> i & 1) && (memory.memoryTypes[i].propertyFlags & wanted) == wanted)
                type = i;
    if (type == memory.memoryTypeCount)
        quit(EXIT_FAILURE, "Vulkan has no memory of the kind that a buffer needs");

    VkMemoryAllocateInfo info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, next, needs.size, type};
    HANDLE_VULKAN(vkAllocateMemory(vulkan.device, &info, NULL, &buffer->memory));
    HANDLE_VULKAN(vkBindBufferMemory(vulkan.device, buffer->buffer, buffer->memory, 0));
    buffer->allocated = needs.size;
}

// Allocates host memory for a buffer, maps it and returns its address. The memory is cached for reads by the
// host if the device has such a memory type.
static inline unsigned char *allocate_host_memory(const VulkanDevice &vulkan, VulkanBuffer *buffer) {
    allocate_memory(vulkan, buffer,
                    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                    VK_MEMORY_PROPERTY_HOST_CACHED_BIT, NULL);
    void *address;
    HANDLE_VULKAN(vkMapMemory(vulkan.device, buffer->memory, 0, VK_WHOLE_SIZE, 0, &address));
    return (unsigned char *)address;
}

static inline void destroy_buffer(const VulkanDevice &vulkan, const VulkanBuffer &buffer) {
    vkDestroyBuffer(vulkan.device, buffer.buffer, NULL);
    vkFreeMemory(vulkan.device, buffer.memory, NULL);
}

static inline void allocate_commands(const VulkanDevice &vulkan, VkCommandBuffer *commands, uint32_t n) {
    VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL, vulkan.pool,
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, n};
    HANDLE_VULKAN(vkAllocateCommandBuffers(vulkan.device, &info, commands));
}

// Blocks until the timeline semaphore has reached this value. After 10 s, for example because a kernel has
// failed, ends the program with one line that names the CUDA error.
static inline void wait_on_host(const VulkanDevice &vulkan, VkSemaphore semaphore, uint64_t value) {
    VkSemaphoreWaitInfo wait = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, NULL, 0, 1, &semaphore, &value};
    VkResult result = vkWaitSemaphores(vulkan.device, &wait, 10000000000); // nanoseconds
    if (result == VK_SUCCESS)
        return;
    cudaError_t error = cudaStreamQuery(NULL);
    quit(EXIT_FAILURE, "the timeline semaphore did not reach the value %llu: %s; CUDA: %s (%s)",
         (unsigned long long)value, vulkan_result(result), cudaGetErrorString(error),
         cudaGetErrorName(error));
}

#endif

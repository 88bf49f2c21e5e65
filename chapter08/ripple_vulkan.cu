// SPDX-License-Identifier: MIT
/*
 * ripple_vulkan: an animation that a kernel writes into a buffer of Vulkan
 *
 * Teaches: CUDA and Vulkan can use the same memory: Vulkan allocates a buffer and exports its memory as a
 *          file descriptor, and CUDA imports it and maps it to a device pointer. A timeline semaphore,
 *          shared in the same way, orders their work on the GPU: Vulkan copies a frame after the kernel
 *          has written it, and the kernel writes the next frame after Vulkan has copied this one. The
 *          host waits only for the copy that it reads.
 * Terms:   interoperability, Vulkan, external memory, timeline semaphore, ownership transfer, UUID,
 *          device pointer
 * Book:    8.5 (after the book)
 * Build:   nvcc -o ripple_vulkan chapter08/ripple_vulkan.cu common/lib/[a-z]*.c -lvulkan
 * Run:     ./bin/chapter08/ripple_vulkan --output ripple.webp
 * Differs: the book describes Direct3D in this section; Vulkan runs on Linux too. Nothing is drawn on a
 *          screen: Vulkan copies each frame to host memory, where it is checked. What any program of Vulkan
 *          needs first, a device and memory, stands below the check.
 * Needs:   libs=vulkan
 * Picture: as chapter05/ripple
 * Check:   --size 101 --frames 2
 */
#include "../common/book.h"
#include "../common/cpu_anim.h"
#include <vulkan/vulkan.h>

#define DIM 1024

// Checks the result of a Vulkan call, as HANDLE_ERROR does for CUDA.
#define HANDLE_VULKAN(...) handle_vulkan((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
static void handle_vulkan(VkResult result, const char *call, const char *file, int line);

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

struct VulkanBuffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize allocated; // bytes of memory, which may be more than the size of the buffer
};

static size_t size = DIM;                      // --size
static VulkanDevice vulkan;                    // the same GPU as the CUDA device
static VulkanBuffer shared;                    // the buffer that Vulkan allocates
static cudaExternalMemory_t cuda_memory;       // its memory, imported by CUDA
static uchar4 *pixels;                         // device pointer of this memory
static VkSemaphore semaphore;                  // the timeline semaphore
static cudaExternalSemaphore_t cuda_semaphore; // the same one, imported by CUDA
static VulkanBuffer host;                      // double buffering: two frames in host memory
static unsigned char *copies;                  // the pointer through which the host reads them
static VkCommandBuffer copy[2];                // the commands that copy even frames, and odd frames
static void check_frame(const unsigned char *pixels, int ticks);
static bool all_frames_right(void);
static void open_vulkan(int cuda_device);
static void close_vulkan(void);
static VulkanBuffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage, const void *create_next,
                                VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                                const void *allocate_next);
static void destroy_buffer(VulkanBuffer buffer);
static void wait_on_host(uint64_t value);

__global__ void kernel(uchar4 *ptr, size_t size, float centre, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x - centre;
    float fy = y - centre;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey = 128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    ptr[offset] = make_uchar4(grey, grey, grey, 255);
}

// Vulkan allocates the buffer and exports its memory; CUDA imports it and maps it to a device pointer.
static void share_buffer(size_t bytes) {
    // The memory becomes a file descriptor.
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkExternalMemoryBufferCreateInfo use = {VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, NULL, type};
    VkExportMemoryAllocateInfo exportable = {VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, NULL, type};
    shared = make_buffer(bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &use, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                         0, &exportable);
    VkMemoryGetFdInfoKHR get_fd = {VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, NULL, shared.memory, type};

    cudaExternalMemoryHandleDesc imported = {};
    imported.type = cudaExternalMemoryHandleTypeOpaqueFd;
    imported.size = shared.allocated;
    HANDLE_VULKAN(vulkan.get_memory_fd(vulkan.device, &get_fd, &imported.handle.fd));
    HANDLE_ERROR(cudaImportExternalMemory(&cuda_memory, &imported)); // CUDA now owns the file descriptor
    cudaExternalMemoryBufferDesc whole = {};
    whole.size = bytes;
    HANDLE_ERROR(cudaExternalMemoryGetMappedBuffer((void **)&pixels, cuda_memory, &whole));
}

// A timeline semaphore holds a number, which a signal increases. A wait ends when the number has reached a
// value. Here 2 t + 1 means that CUDA has written frame t, and 2 t + 2 that Vulkan has copied it.
static void share_semaphore(void) {
    const VkExternalSemaphoreHandleTypeFlagBits type = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkExportSemaphoreCreateInfo exportable = {VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, NULL, type};
    VkSemaphoreTypeCreateInfo timeline = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, &exportable,
                                          VK_SEMAPHORE_TYPE_TIMELINE, 0};
    VkSemaphoreCreateInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &timeline, 0};
    HANDLE_VULKAN(vkCreateSemaphore(vulkan.device, &info, NULL, &semaphore));
    VkSemaphoreGetFdInfoKHR get_fd = {VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR, NULL, semaphore, type};
    cudaExternalSemaphoreHandleDesc imported = {};
    imported.type = cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
    HANDLE_VULKAN(vulkan.get_semaphore_fd(vulkan.device, &get_fd, &imported.handle.fd));
    HANDLE_ERROR(cudaImportExternalSemaphore(&cuda_semaphore, &imported));
}

// Records a pipeline barrier: commands of `stage` after it wait for copies before it. `before` and `after`
// are the kinds of access on both sides. If `from` and `to` are different queue families, the barrier also
// transfers the ownership of the buffer.
static void barrier(VkCommandBuffer list, VkBuffer buffer, uint32_t from, uint32_t to, VkAccessFlags before,
                    VkPipelineStageFlags stage, VkAccessFlags after) {
    VkBufferMemoryBarrier whole = {
        VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, NULL, before, after, from, to, buffer, 0, VK_WHOLE_SIZE};
    vkCmdPipelineBarrier(list, VK_PIPELINE_STAGE_TRANSFER_BIT, stage, 0, 0, NULL, 1, &whole, 0, NULL);
}

// Records the commands that copy the shared buffer to host memory. The first two barriers acquire the buffer
// from CUDA, the external owner, and release it again; the third one makes the copy visible to the host.
static void record_copy(VkCommandBuffer list, size_t bytes, size_t offset) {
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL, 0, NULL};
    VkBufferCopy region = {0, offset, bytes};
    HANDLE_VULKAN(vkBeginCommandBuffer(list, &begin));
    barrier(list, shared.buffer, VK_QUEUE_FAMILY_EXTERNAL, vulkan.family, 0, VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT);
    vkCmdCopyBuffer(list, shared.buffer, host.buffer, 1, &region);
    barrier(list, shared.buffer, vulkan.family, VK_QUEUE_FAMILY_EXTERNAL, VK_ACCESS_TRANSFER_READ_BIT,
            VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0);
    barrier(list, host.buffer, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    HANDLE_VULKAN(vkEndCommandBuffer(list));
}

// CUDA waits for the copy of the frame before, writes frame `ticks` and signals that it is written. All three
// calls are asynchronous: the host does not wait.
static void compute_frame(int ticks) {
    cudaExternalSemaphoreWaitParams copied = {};
    copied.params.fence.value = 2ull * ticks;
    HANDLE_ERROR(cudaWaitExternalSemaphoresAsync(&cuda_semaphore, &copied, 1));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(pixels, size, size / 2, ticks);
    HANDLE_LAUNCH();
    cudaExternalSemaphoreSignalParams written = {};
    written.params.fence.value = 2ull * ticks + 1;
    HANDLE_ERROR(cudaSignalExternalSemaphoresAsync(&cuda_semaphore, &written, 1));
}

// Vulkan waits until CUDA has written frame `ticks`, copies it and signals that it is copied.
static void copy_frame(int ticks) {
    const uint64_t written = 2ull * ticks + 1, copied = 2ull * ticks + 2;
    VkTimelineSemaphoreSubmitInfo values = {
        VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, NULL, 1, &written, 1, &copied};
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT; // only copies wait
    VkSubmitInfo submit = {
        VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, 1, &semaphore, &stage, 1, &copy[ticks % 2], 1, &semaphore};
    HANDLE_VULKAN(vkQueueSubmit(vulkan.queue, 1, &submit, VK_NULL_HANDLE));
}

// Double buffering: frames `ticks` and `ticks` + 1 have been submitted. When the host has read frame `ticks`,
// its half of the host memory is reused for frame `ticks` + 2, which the GPU computes asynchronously.
static void generate_frame(CPUAnimBitmap *bitmap, int ticks) {
    wait_on_host(2ull * ticks + 2);
    memcpy(bitmap->get_ptr(), copies + ticks % 2 * bitmap->image_size(), bitmap->image_size());
    compute_frame(ticks + 2);
    copy_frame(ticks + 2);
    check_frame(bitmap->get_ptr(), ticks);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    open_vulkan(options.device);
    CPUAnimBitmap bitmap(size, size, &bitmap);
    size_t bytes = bitmap.image_size();
    share_buffer(bytes);
    share_semaphore();
    host = make_buffer(2 * bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT, NULL,
                       VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                       VK_MEMORY_PROPERTY_HOST_CACHED_BIT, NULL); // cached: for reads by the host
    HANDLE_VULKAN(vkMapMemory(vulkan.device, host.memory, 0, VK_WHOLE_SIZE, 0, (void **)&copies));
    VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL, vulkan.pool,
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 2};
    HANDLE_VULKAN(vkAllocateCommandBuffers(vulkan.device, &info, copy));
    record_copy(copy[0], bytes, 0);
    record_copy(copy[1], bytes, bytes);

    for (int ticks = 0; ticks < 2; ticks++) {
        compute_frame(ticks);
        copy_frame(ticks);
    }
    bitmap.anim_and_exit(generate_frame);
    bool ok = all_frames_right();

    HANDLE_VULKAN(vkDeviceWaitIdle(vulkan.device)); // two more frames have been submitted
    HANDLE_ERROR(cudaFree(pixels));
    HANDLE_ERROR(cudaDestroyExternalMemory(cuda_memory));
    HANDLE_ERROR(cudaDestroyExternalSemaphore(cuda_semaphore));
    vkDestroySemaphore(vulkan.device, semaphore, NULL);
    destroy_buffer(shared);
    destroy_buffer(host);
    close_vulkan();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/ripple.h"
#include <unistd.h>

void settings(int argc, char **argv) {
    configure(argc, argv, "Animates a ripple in memory that CUDA and Vulkan share.", ANIMATION,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side")});
    require_memory(4 * size * size * 4, size * size * 4);
}

static int right, wrong; // frames

// Compares every frame, up to the first wrong one: a synchronization error can change a single frame.
static void check_frame(const unsigned char *pixels, int ticks) {
    if (wrong == 0 && is_ripple(pixels, size, size / 2, size / 2, ticks))
        right++;
    else if (wrong++ == 0)
        fprintf(stderr, "Frame %d is wrong.\n", ticks);
}

static bool all_frames_right(void) {
    if (wrong == 0)
        printf("All %d frames that Vulkan copied are right.\n", right);
    return wrong == 0 && right > 0;
}

// ---- the functions of Vulkan that are not part of the lesson: error check, instance, device and queue,
// buffers and memory allocation

static void handle_vulkan(VkResult result, const char *call, const char *file, int line) {
    if (result != VK_SUCCESS)
        quit_line(EXIT_FAILURE, "%s:%d: %s: error %d of Vulkan", file, line, call, result);
}

// Sets vulkan.gpu to the device with the UUID of the CUDA device: CUDA and Vulkan report the same UUID for a
// GPU.
static void find_gpu(const cudaDeviceProp *wanted) {
    uint32_t count = 64;
    VkPhysicalDevice gpus[64];
    HANDLE_VULKAN(vkEnumeratePhysicalDevices(vulkan.instance, &count, gpus));
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceIDProperties id = {};
        id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
        VkPhysicalDeviceProperties2 properties = {};
        properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
        properties.pNext = &id;
        vkGetPhysicalDeviceProperties(gpus[i], &properties.properties);
        if (properties.properties.apiVersion < VK_API_VERSION_1_2) // the first with timeline semaphores
            continue;
        vkGetPhysicalDeviceProperties2(gpus[i], &properties);
        if (memcmp(id.deviceUUID, wanted->uuid.bytes, VK_UUID_SIZE) == 0)
            vulkan.gpu = gpus[i];
    }
    if (!vulkan.gpu)
        quit(EXIT_WAIVED, "needs a driver of Vulkan 1.2 for the CUDA device %s, found none", wanted->name);
}

// Sets vulkan.family to the first queue family that can copy: queues for graphics or compute can, and each
// device has one.
static void find_family(void) {
    uint32_t count = 64;
    VkQueueFamilyProperties families[64];
    vkGetPhysicalDeviceQueueFamilyProperties(vulkan.gpu, &count, families);
    const VkQueueFlags can_copy = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    while (vulkan.family < count && !(families[vulkan.family].queueFlags & can_copy))
        vulkan.family++;
}

// If the program exits early, submitted commands may wait for a semaphore that is never signaled. The exit
// handlers of the drivers wait for these commands, which would be a deadlock. So _exit() skips the handlers.
static bool vulkan_is_open;

static void skip_drivers_at_exit(int status, void *) {
    if (!vulkan_is_open)
        return;
    fflush(NULL);
    _exit(status);
}

// Creates a Vulkan device for the GPU of this CUDA device. Ends the program with one line and EXIT_WAIVED if
// Vulkan does not have this GPU, or if memory and timeline semaphores cannot be shared.
static void open_vulkan(int cuda_device) {
    cudaDeviceProp cuda;
    HANDLE_ERROR(cudaGetDeviceProperties(&cuda, cuda_device));
    if (!cuda.timelineSemaphoreInteropSupported)
        quit(EXIT_WAIVED, "needs a CUDA device that can use timeline semaphores of Vulkan, %s cannot%s",
             cuda.name, CPU_BACKEND ? " (CPU back end)" : "");

    VkApplicationInfo application = {
        VK_STRUCTURE_TYPE_APPLICATION_INFO, NULL, NULL, 0, NULL, 0, VK_API_VERSION_1_2};
    VkInstanceCreateInfo instance = {
        VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, NULL, 0, &application, 0, NULL, 0, NULL};
    VkResult result = vkCreateInstance(&instance, NULL, &vulkan.instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        quit(EXIT_WAIVED, "needs a driver of Vulkan, found none (docs/building.md, Containers)");
    HANDLE_VULKAN(result);
    find_gpu(&cuda);
    find_family();

    const float priority = 1;
    const char *const extensions[] = {"VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd"};
    VkDeviceQueueCreateInfo queue = {
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, NULL, 0, vulkan.family, 1, &priority};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, NULL, VK_TRUE};
    VkDeviceCreateInfo device = {
        VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timeline, 0, 1, &queue, 0, NULL, 2, extensions, NULL};
    result = vkCreateDevice(vulkan.gpu, &device, NULL, &vulkan.device);
    if (result == VK_ERROR_EXTENSION_NOT_PRESENT || result == VK_ERROR_FEATURE_NOT_PRESENT)
        quit(EXIT_WAIVED,
             "needs memory and timeline semaphores that Vulkan can export, which the driver of %s lacks",
             cuda.name);
    HANDLE_VULKAN(result);
    vulkan_is_open = true;
    on_exit(skip_drivers_at_exit, NULL); // called first: exit handlers run in reverse order
    vkGetDeviceQueue(vulkan.device, vulkan.family, 0, &vulkan.queue);
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL, 0, vulkan.family};
    HANDLE_VULKAN(vkCreateCommandPool(vulkan.device, &pool, NULL, &vulkan.pool));

    vulkan.get_memory_fd = (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(vulkan.device, "vkGetMemoryFdKHR");
    vulkan.get_semaphore_fd =
        (PFN_vkGetSemaphoreFdKHR)vkGetDeviceProcAddr(vulkan.device, "vkGetSemaphoreFdKHR");
}

// Command buffers are freed with their pool.
static void close_vulkan(void) {
    vulkan_is_open = false;
    vkDestroyCommandPool(vulkan.device, vulkan.pool, NULL);
    vkDestroyDevice(vulkan.device, NULL);
    vkDestroyInstance(vulkan.instance, NULL);
}

// The first of the allowed memory types (one bit each) that has these properties, or 32
static uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) {
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(vulkan.gpu, &memory);
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    return 32;
}

// Creates a buffer for one queue family at a time, in memory with the required properties, and the preferred
// ones too if the device has such memory. The others are structures for pNext of VkBufferCreateInfo and
// VkMemoryAllocateInfo, or NULL.
static VulkanBuffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage, const void *create_next,
                                VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                                const void *allocate_next) {
    VulkanBuffer result = {};
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.pNext = create_next;
    info.size = bytes;
    info.usage = usage;
    HANDLE_VULKAN(vkCreateBuffer(vulkan.device, &info, NULL, &result.buffer));

    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(vulkan.device, result.buffer, &needs);
    uint32_t type = memory_type(needs.memoryTypeBits, required | preferred);
    if (type == 32)
        type = memory_type(needs.memoryTypeBits, required);
    if (type == 32)
        quit(EXIT_FAILURE, "Vulkan has no memory of the kind that a buffer needs");
    VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, allocate_next, needs.size, type};
    HANDLE_VULKAN(vkAllocateMemory(vulkan.device, &memory, NULL, &result.memory));
    HANDLE_VULKAN(vkBindBufferMemory(vulkan.device, result.buffer, result.memory, 0));
    result.allocated = needs.size;
    return result;
}

static void destroy_buffer(VulkanBuffer buffer) {
    vkDestroyBuffer(vulkan.device, buffer.buffer, NULL);
    vkFreeMemory(vulkan.device, buffer.memory, NULL);
}

// Blocks until the timeline semaphore has reached this value. After 10 s, for example because a kernel has
// failed, ends the program with one line that names the CUDA error.
static void wait_on_host(uint64_t value) {
    VkSemaphoreWaitInfo wait = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, NULL, 0, 1, &semaphore, &value};
    VkResult result = vkWaitSemaphores(vulkan.device, &wait, 10000000000); // nanoseconds
    if (result == VK_SUCCESS)
        return;
    cudaError_t error = cudaStreamQuery(NULL);
    quit(EXIT_FAILURE,
         "the timeline semaphore did not reach the value %llu: result %d of Vulkan; CUDA: %s (%s)",
         (unsigned long long)value, result, cudaGetErrorString(error), cudaGetErrorName(error));
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y). Threads outside the picture do nothing. Let d be the distance of
// (x, y) from (centre, centre). The grey value is 128 + 127 * cos(d / 10 - ticks / 7) / (d / 10 + 1), all in
// float. The pixel ptr[x + y * size] has the grey value as red, green and blue, and alpha 255.
// compute_frame(): Issue three asynchronous operations to the default stream. First, the stream waits until
// cuda_semaphore has reached the value 2 * ticks. Then launch kernel with the arguments pixels, size,
// size / 2 and ticks and with blocks of 16 x 16 threads that cover the picture, and check the launch.
// Finally, signal cuda_semaphore with the value 2 * ticks + 1.

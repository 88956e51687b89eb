// A row kernel and a product of 16 rows in CUDA C, for time_early_launch.py: what the hardware does without Triton.
// Every thread asks for its own 16 bytes of the weight and reads them back itself, so nothing stands between its loads
// and the wait but what the flags say.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

using bf16 = __nv_bfloat16;
constexpr int K = 2816, SPLITS = 4, DEPTH = K / SPLITS, STEPS = DEPTH / 64, PITCH = DEPTH / 8 + 1;  // PITCH: no bank conflicts
enum Flags { WAIT_TOP = 1, WAIT_LATE = 2, TRIGGER_TOP = 4, TRIGGER_LATE = 8 };

__device__ __forceinline__ void when(bool now, bool wait) {
    if (!now) return;
    if (wait) asm volatile("griddepcontrol.wait;" ::: "memory");
    else asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__global__ void empty(int flags) {
    when(flags & TRIGGER_TOP, false);
    when(flags & WAIT_TOP, true);
}

// x [row, K] = the sums of the splits, normed and scaled. A program per row, four columns per thread.
__global__ void __launch_bounds__(K / 4) row_kernel(const float* sums, const bf16* scales, bf16* x, int N, int flags) {
    __shared__ float parts[K / 128];
    int row = blockIdx.x, t = threadIdx.x;
    when(flags & TRIGGER_TOP, false);
    when(flags & WAIT_TOP, true);
    uint2 scale = __ldcg(reinterpret_cast<const uint2*>(scales) + t);
    when(flags & WAIT_LATE, true);
    float v[4] = {0, 0, 0, 0}, square = 0;
    float4 split[SPLITS];
    for (int s = 0; s < SPLITS; s++) split[s] = __ldcg(reinterpret_cast<const float4*>(sums + (s * 16 + row) * N) + t);
    when(flags & TRIGGER_LATE, false);
    for (int s = 0; s < SPLITS; s++) v[0] += split[s].x, v[1] += split[s].y, v[2] += split[s].z, v[3] += split[s].w;
    for (float a : v) square += a * a;
    for (int far = 16; far; far /= 2) square += __shfl_xor_sync(~0u, square, far);
    if (t % 32 == 0) parts[t / 32] = square;
    __syncthreads();
    square = 0;
    for (float part : parts) square += part;
    float inverse = rsqrtf(square / K + 1e-6f);
    const bf16* by = reinterpret_cast<const bf16*>(&scale);
    for (int i = 0; i < 4; i++) x[row * K + t * 4 + i] = __float2bfloat16(v[i] * inverse * __bfloat162float(by[i]));
}

__device__ __forceinline__ void multiply(float* c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// out [split, 16, N] = x [16, K] times w [N, K] over the split's depth; 8 columns per warp. A product that follows
// directly reads ``next`` [16, K], the first split's sums.
template <int WARPS, int STAGES>
__global__ void __launch_bounds__(32 * WARPS) product(
    const bf16* x, const bf16* w, float* out, bf16* next, int N, int rows, int flags) {
    constexpr int THREADS = 32 * WARPS, COUNT = (16 * DEPTH / 8 + THREADS - 1) / THREADS;
    extern __shared__ uint4 ring[];
    uint4* xs = ring + STAGES * 2 * THREADS;
    int t = threadIdx.x, g = t % 32 / 4, q = t % 4, first = (blockIdx.x * WARPS + t / 32) * 8, split = blockIdx.y;
    when(flags & TRIGGER_TOP, false);
    when(flags & WAIT_TOP, true);
    const uint4* mine = reinterpret_cast<const uint4*>(w + (first + g) * K + split * DEPTH) + q;
    auto ask = [&](int step) {
        for (int half = 0; half < 2 && step < STEPS; half++) {
            uint32_t to = __cvta_generic_to_shared(ring + (step % STAGES * 2 + half) * THREADS + t);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(mine + step * 8 + half * 4) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
#pragma unroll
    for (int step = 0; step < STAGES; step++) ask(step);
    when(flags & WAIT_LATE, true);
    uint4 rows_of_x[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int at = t + i * THREADS, row = at / (DEPTH / 8), column = at % (DEPTH / 8);
        if (row < rows) rows_of_x[i] = __ldcg(reinterpret_cast<const uint4*>(x + row * K + split * DEPTH) + column);
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int at = t + i * THREADS, row = at / (DEPTH / 8), column = at % (DEPTH / 8);
        if (row < rows) xs[row * PITCH + column] = rows_of_x[i];
    }
    __syncthreads();
    float c[4] = {0, 0, 0, 0};
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
        for (int half = 0; half < 2; half++) {
            uint4 b = ring[(step % STAGES * 2 + half) * THREADS + t];
            uint4 low = xs[g * PITCH + step * 8 + half * 4 + q], high = xs[(g + 8) * PITCH + step * 8 + half * 4 + q];
            multiply(c, low.x, high.x, low.y, high.y, b.x, b.y);
            multiply(c, low.z, high.z, low.w, high.w, b.z, b.w);
        }
        ask(step + STAGES);
        if (step == STEPS - STAGES) when(flags & TRIGGER_LATE, false);
    }
    for (int i = 0; i < 4; i++) {
        int row = g + i / 2 * 8, column = first + q * 2 + i % 2;
        if (row >= rows) continue;
        out[(split * 16 + row) * N + column] = c[i];
        if (next && split == 0 && column < K) next[row * K + column] = __float2bfloat16(c[i]);
    }
}

template <typename... A>
static int launch(void (*kernel)(A...), dim3 grid, int threads, int shared, cudaStream_t stream, bool early, A... arguments) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{grid, dim3(threads), size_t(shared), stream, &attribute, early ? 1u : 0u};
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <int WARPS, int STAGES> constexpr int shared_bytes = (STAGES * 64 * WARPS + 16 * PITCH) * 16;

template <typename F> static int allow(F kernel, int shared, int carveout) {
    int error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    return error | cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout);
}

extern "C" {
// The part of a multiprocessor's memory that is shared memory, in percent for every kernel; -1 leaves it to the driver.
int prepare(int carveout) {
    return allow(product<4, 6>, shared_bytes<4, 6>, carveout) | allow(product<16, 5>, shared_bytes<16, 5>, carveout) |
           allow(row_kernel, 0, carveout) | allow(empty, 0, carveout);
}
int launch_empty(cudaStream_t stream, int programs, int threads, int flags, bool early) {
    return launch(empty, programs, threads, 0, stream, early, flags);
}
int launch_row(cudaStream_t stream, const float* sums, const bf16* scales, bf16* x, int N, int rows, int flags, bool early) {
    return launch(row_kernel, rows, K / 4, 0, stream, early, sums, scales, x, N, flags);
}
int launch_product(cudaStream_t stream, bool even, const bf16* x, const bf16* w, float* out, bf16* next, int N, int rows,
                   int flags, bool early) {
    if (even)
        return launch(product<16, 5>, dim3(N / 128, SPLITS), 512, shared_bytes<16, 5>, stream, early, x, w, out, next, N, rows, flags);
    return launch(product<4, 6>, dim3(N / 32, SPLITS), 128, shared_bytes<4, 6>, stream, early, x, w, out, next, N, rows, flags);
}
}

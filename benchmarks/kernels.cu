// The kernels of sample_ext/kernels as one writes them in CUDA C++: the same algorithms, 16-byte loads
// and geometry. A slice in Rust is two parameters here, a pointer and its length, as in the Rust ABI.

#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

using usize = unsigned long long;

constexpr int THREADS = 256;

// N elements of 16 bytes together.
template <typename T, int N>
struct alignas(16) Pack {
    static_assert(sizeof(T) * N == 16);
    T element[N];
};

template <typename T>
__device__ bool is_aligned(const T* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

// One load where all elements exist and are aligned, else one for each; `fill` beyond the end.
template <int N, typename T>
__device__ Pack<T, N> load(const T* slice, usize length, usize start, T fill) {
    if (start + N <= length && is_aligned(slice + start)) {
        return *reinterpret_cast<const Pack<T, N>*>(slice + start);
    }
    Pack<T, N> pack;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        pack.element[k] = start + k < length ? slice[start + k] : fill;
    }
    return pack;
}

template <int N, typename T>
__device__ void store(T* slice, usize length, usize start, Pack<T, N> pack) {
    if (start + N <= length && is_aligned(slice + start)) {
        *reinterpret_cast<Pack<T, N>*>(slice + start) = pack;
        return;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
        if (start + k < length) {
            slice[start + k] = pack.element[k];
        }
    }
}

struct Sum {
    static constexpr float NEUTRAL = 0.0f;
    __device__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
    static constexpr float NEUTRAL = -INFINITY;
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename Combine>
__device__ float reduce_warp(float value, Combine combine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(0xffffffff, value, distance));
    }
    return value;
}

// Every warp reduces its own values, then all warps reduce the warps' results, each for itself.
template <typename Combine>
__device__ float reduce_block(float value, float* shared, Combine combine) {
    const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const float result = reduce_warp(value, combine);
    if (lane == 0) {
        shared[threadIdx.x / 32] = result;
    }
    __syncthreads();
    return reduce_warp(lane < warps ? shared[lane] : Combine::NEUTRAL, combine);
}

extern "C" __global__ void saxpy(
    float a, const float* __restrict__ x, usize x_length, float* __restrict__ y, usize y_length) {
    const usize start = 4 * (static_cast<usize>(blockIdx.x) * blockDim.x + threadIdx.x);
    const auto old = load<4>(y, y_length, start, 0.0f);
    const auto added = load<4>(x, x_length, start, 0.0f);
    Pack<float, 4> result;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        result.element[k] = a * added.element[k] + old.element[k];
    }
    store(y, y_length, start, result);
}

extern "C" __global__ void __launch_bounds__(THREADS) rmsnorm(
    const float* __restrict__ x, usize x_stride, const float* __restrict__ weight, usize columns,
    float* __restrict__ y, float eps) {
    __shared__ float partial[32];
    const usize row = blockIdx.x;
    x += row * x_stride;
    y += row * columns;

    float squares = 0.0f;
    for (usize start = 4 * threadIdx.x; start < columns; start += 4 * THREADS) {
        const auto values = load<4>(x, columns, start, 0.0f);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            squares += values.element[k] * values.element[k];
        }
    }
    const float mean = reduce_block(squares, partial, Sum{}) / static_cast<float>(columns);
    const float scale = rsqrtf(mean + eps);

    for (usize start = 4 * threadIdx.x; start < columns; start += 4 * THREADS) {
        const auto values = load<4>(x, columns, start, 0.0f);
        const auto weights = load<4>(weight, columns, start, 0.0f);
        Pack<float, 4> result;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            result.element[k] = values.element[k] * scale * weights.element[k];
        }
        store(y, columns, start, result);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) softmax(
    const float* __restrict__ x, float* __restrict__ y, usize columns) {
    __shared__ float maxima[32], sums[32];
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;

    // Both at once: where a larger maximum turns up, the sum so far is scaled to it.
    float max = -FLT_MAX, sum = 0.0f;
    for (usize start = 4 * threadIdx.x; start < columns; start += 4 * THREADS) {
        const auto values = load<4>(x, columns, start, -INFINITY);
        float larger = max;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            larger = fmaxf(larger, values.element[k]);
        }
        sum *= expf(max - larger);
        max = larger;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            sum += expf(values.element[k] - max);
        }
    }
    const float row_max = reduce_block(max, maxima, Max{});
    const float row_sum = reduce_block(sum * expf(max - row_max), sums, Sum{});
    const float scale = 1.0f / row_sum;

    for (usize start = 4 * threadIdx.x; start < columns; start += 4 * THREADS) {
        const auto values = load<4>(x, columns, start, 0.0f);
        Pack<float, 4> result;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            result.element[k] = expf(values.element[k] - row_max) * scale;
        }
        store(y, columns, start, result);
    }
}

extern "C" __global__ void silu_and_mul(
    const __half* __restrict__ x, __half* __restrict__ y, usize columns) {
    const usize row = blockIdx.x;
    const usize start = 8 * static_cast<usize>(blockIdx.y * blockDim.x + threadIdx.x);
    const __half zero = __ushort_as_half(0);
    const auto gates = load<8>(x + 2 * row * columns, columns, start, zero);
    const auto values = load<8>(x + (2 * row + 1) * columns, columns, start, zero);
    Pack<__half, 8> result;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        const float gate = __half2float(gates.element[k]);
        result.element[k] = __float2half(gate / (1.0f + expf(-gate)) * __half2float(values.element[k]));
    }
    store(y + row * columns, columns, start, result);
}

constexpr int SIDE = 32;
// Rows of a tile that the block moves at once.
constexpr int ROWS = 8;

extern "C" __global__ void __launch_bounds__(SIDE * ROWS) transpose(
    const float* __restrict__ x, usize x_stride, float* __restrict__ y, usize rows, usize columns) {
    // One column more than is used: the elements of a column then lie in different banks.
    __shared__ float tile[SIDE][SIDE + 1];
    const usize lane = threadIdx.x, warp = threadIdx.y;
    const usize left = static_cast<usize>(SIDE) * blockIdx.x, top = static_cast<usize>(SIDE) * blockIdx.y;

    for (usize i = warp; i < SIDE; i += ROWS) {
        if (top + i < rows && left + lane < columns) {
            tile[i][lane] = x[(top + i) * x_stride + left + lane];
        }
    }
    __syncthreads();
    for (usize i = warp; i < SIDE; i += ROWS) {
        if (left + i < columns && top + lane < rows) {
            y[(left + i) * rows + top + lane] = tile[lane][i];
        }
    }
}

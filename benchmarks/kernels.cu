// The kernels of sample_ext/kernels as one writes them in CUDA C++: the same algorithms, 16-byte loads
// and geometry. A slice in Rust is two parameters here, a pointer and its length, as in the Rust ABI.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

using usize = unsigned long long;

constexpr int THREADS = 256;
constexpr float LOG2_E = 1.44269504f;

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

__device__ float to_float(float value) { return value; }
__device__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ float to_float(__half value) { return __half2float(value); }

template <typename T>
__device__ T from_float(float value);
template <>
__device__ float from_float(float value) { return value; }
template <>
__device__ __nv_bfloat16 from_float(float value) { return __float2bfloat16(value); }
template <>
__device__ __half from_float(float value) { return __float2half(value); }

// One thread's part of a row: every so-many-th pack of N elements, so that neighbours load neighbouring
// packs. KEPT packs stay in registers, so that most rows are loaded once only.
template <typename T, int N, int KEPT>
struct Share {
    const T* row;
    usize columns;
    T fill;
    usize start, step;
    Pack<T, N> kept[KEPT];

    __device__ Share(const T* row, usize columns, T fill)
        : row(row), columns(columns), fill(fill), start(N * threadIdx.x), step(N * blockDim.x) {
#pragma unroll
        for (int i = 0; i < KEPT; ++i) {
            kept[i] = load<N>(row, columns, start + i * step, fill);
        }
    }

    template <typename Combine>
    __device__ float fold(float result, Combine combine) const {
        const auto add = [&](const Pack<T, N>& pack) {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                result = combine(result, to_float(pack.element[k]));
            }
        };
#pragma unroll
        for (int i = 0; i < KEPT; ++i) {
            add(kept[i]);
        }
        for (usize at = start + KEPT * step; at < columns; at += step) {
            add(load<N>(row, columns, at, fill));
        }
        return result;
    }

    // `change(index of a pack's first element)(k, value)` of every element goes to `target`.
    template <typename Change>
    __device__ void store_to(T* target, Change change) const {
        const auto put = [&](usize at, const Pack<T, N>& pack) {
            const auto changed = change(at);
            Pack<T, N> result;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                result.element[k] = from_float<T>(changed(k, to_float(pack.element[k])));
            }
            store(target, columns, at, result);
        };
#pragma unroll
        for (int i = 0; i < KEPT; ++i) {
            put(start + i * step, kept[i]);
        }
        for (usize at = start + KEPT * step; at < columns; at += step) {
            put(at, load<N>(row, columns, at, fill));
        }
    }
};

template <typename T, int N, int KEPT>
__device__ void rmsnorm_row(const T* x, usize x_stride, const T* weight, usize columns, T* y, float eps) {
    __shared__ float partial[32];
    const usize row = blockIdx.x;
    const Share<T, N, KEPT> share(x + row * x_stride, columns, from_float<T>(0.0f));
    const float squares = share.fold(0.0f, [](float sum, float value) { return sum + value * value; });
    const float mean = reduce_block(squares, partial, Sum{}) / static_cast<float>(columns);
    const float scale = rsqrtf(mean + eps);
    share.store_to(y + row * columns, [&](usize at) {
        const auto weights = load<N>(weight, columns, at, from_float<T>(0.0f));
        return [=](int k, float value) { return value * scale * to_float(weights.element[k]); };
    });
}

extern "C" __global__ void __launch_bounds__(512) rmsnorm(
    const float* __restrict__ x, usize x_stride, const float* __restrict__ weight, usize columns,
    float* __restrict__ y, float eps) {
    rmsnorm_row<float, 4, 4>(x, x_stride, weight, columns, y, eps);
}

extern "C" __global__ void __launch_bounds__(512) rmsnorm_bf16(
    const __nv_bfloat16* __restrict__ x, usize x_stride, const __nv_bfloat16* __restrict__ weight,
    usize columns, __nv_bfloat16* __restrict__ y, float eps) {
    rmsnorm_row<__nv_bfloat16, 8, 2>(x, x_stride, weight, columns, y, eps);
}

__device__ float exp2_approx(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

template <typename T, int N, int KEPT>
__device__ void softmax_row(const T* x, T* y, usize columns) {
    __shared__ float maxima[32], sums[32];
    const Share<T, N, KEPT> share(x + blockIdx.x * columns, columns, from_float<T>(-INFINITY));
    const float max =
        reduce_block(share.fold(-FLT_MAX, [](float a, float b) { return fmaxf(a, b); }), maxima, Max{});
    const auto exponential = [=](float value) { return exp2_approx((value - max) * LOG2_E); };
    const float sum =
        reduce_block(share.fold(0.0f, [=](float a, float b) { return a + exponential(b); }), sums, Sum{});
    const float scale = 1.0f / sum;
    share.store_to(y + blockIdx.x * columns, [=](usize) {
        return [=](int, float value) { return exponential(value) * scale; };
    });
}

extern "C" __global__ void __launch_bounds__(1024) softmax(
    const float* __restrict__ x, float* __restrict__ y, usize columns) {
    softmax_row<float, 4, 8>(x, y, columns);
}

extern "C" __global__ void __launch_bounds__(1024) softmax_bf16(
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, usize columns) {
    softmax_row<__nv_bfloat16, 8, 4>(x, y, columns);
}

template <typename T>
__device__ void silu_and_mul_row(const T* x, T* y, usize columns) {
    const usize row = blockIdx.x;
    const T zero = from_float<T>(0.0f);
    const unsigned packs = static_cast<unsigned>((columns + 7) / 8);
    for (unsigned pack = threadIdx.x; pack < packs; pack += THREADS) {
        const usize start = 8 * static_cast<usize>(pack);
        const auto gates = load<8>(x + 2 * row * columns, columns, start, zero);
        const auto values = load<8>(x + (2 * row + 1) * columns, columns, start, zero);
        Pack<T, 8> result;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const float gate = to_float(gates.element[k]);
            const float silu = __fdividef(gate, 1.0f + expf(-gate));
            result.element[k] = from_float<T>(silu * to_float(values.element[k]));
        }
        store(y + row * columns, columns, start, result);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) silu_and_mul_f16(
    const __half* __restrict__ x, __half* __restrict__ y, usize columns) {
    silu_and_mul_row(x, y, columns);
}

extern "C" __global__ void __launch_bounds__(THREADS) silu_and_mul_bf16(
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, usize columns) {
    silu_and_mul_row(x, y, columns);
}

constexpr int SIDE = 64;
// Rows of a tile that the block moves at once, a pack a thread.
constexpr int ROWS = 16;

extern "C" __global__ void __launch_bounds__(16 * ROWS) transpose(
    const float* __restrict__ x, usize x_stride, float* __restrict__ y, usize rows, usize columns) {
    // One column more than is used: the elements of a column then lie in different banks.
    __shared__ float tile[SIDE][SIDE + 1];
    const usize lane = 4 * threadIdx.x, first = threadIdx.y;
    const usize top = static_cast<usize>(SIDE) * blockIdx.x, left = static_cast<usize>(SIDE) * blockIdx.y;
    Pack<float, 4> packs[SIDE / ROWS];
#pragma unroll
    for (int step = 0; step < SIDE / ROWS; ++step) {
        const usize row = top + first + ROWS * step;
        packs[step] = load<4>(x + row * x_stride, row < rows ? columns : 0, left + lane, 0.0f);
    }
#pragma unroll
    for (int step = 0; step < SIDE / ROWS; ++step) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            tile[first + ROWS * step][lane + k] = packs[step].element[k];
        }
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < SIDE / ROWS; ++step) {
        const usize i = first + ROWS * step;
        Pack<float, 4> pack;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            pack.element[k] = tile[lane + k][i];
        }
        store(y + (left + i) * rows, left + i < columns ? rows : 0, top + lane, pack);
    }
}

// Packs that a thread loads before it needs the first.
constexpr int AT_ONCE = 4;

// Calls `visit` with every element of this thread's part of `x`, and some times with `fill`.
template <typename Visit>
__device__ void for_each(const float* __restrict__ x, usize length, float fill, Visit visit) {
    const usize first = blockIdx.x * blockDim.x + threadIdx.x, step = 4 * gridDim.x * blockDim.x;
    const usize before = (16 - reinterpret_cast<uintptr_t>(x) % 16) % 16 / sizeof(float);
    const usize head = before < length ? before : length;
    for (usize at = 4 * first; at < length - head; at += AT_ONCE * step) {
        Pack<float, 4> loaded[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            loaded[i] = load<4>(x + head, length - head, at + i * step, fill);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                visit(loaded[i].element[k]);
            }
        }
    }
    visit(first < head ? x[first] : fill);
}

extern "C" __global__ void __launch_bounds__(256, 8) reduce_sum(
    const float* __restrict__ x, usize length, float* __restrict__ partial, usize blocks) {
    __shared__ float per_warp[32];
    float total = 0.0f;
    for_each(x, length, 0.0f, [&](float value) { total += value; });
    total = reduce_block(total, per_warp, Sum{});
    if (threadIdx.x == 0 && blockIdx.x < blocks) {
        partial[blockIdx.x] = total;
    }
}

extern "C" __global__ void __launch_bounds__(256, 8) histogram(
    const float* __restrict__ x, usize length, float low, float high, int* __restrict__ counts, unsigned bins) {
    extern __shared__ int of_block[];
    for (unsigned bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        of_block[bin] = 0;
    }
    __syncthreads();
    const float scale = bins / (high - low);
    for_each(x, length, NAN, [&](float value) {
        if (low <= value && value <= high) {
            const unsigned bin = static_cast<unsigned>((value - low) * scale);
            atomicAdd(of_block + (bin < bins - 1 ? bin : bins - 1), 1);
        }
    });
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        atomicAdd(counts + bin, of_block[bin]);
    }
}

// Rows and columns of C that a block computes; columns of A and rows of B in shared memory at once.
constexpr int C_SIDE = 128, DEPTH = 8;
// Rows and columns of C that a thread computes: two groups of four each, half a side apart.
constexpr int GROUPS = 2;

extern "C" __global__ void __launch_bounds__(256, 2) sgemm(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, unsigned m, unsigned n,
    unsigned k) {
    __shared__ alignas(16) float a_tile[2][DEPTH][C_SIDE];
    __shared__ alignas(16) float b_tile[2][DEPTH][C_SIDE];
    const unsigned left = C_SIDE * blockIdx.x, top = C_SIDE * blockIdx.y;
    // What this thread brings: a pack of a row of A, and one of a row of B.
    const unsigned a_row = threadIdx.x / 2, a_column = 4 * (threadIdx.x % 2);
    const unsigned b_row = threadIdx.x / 32, b_column = 4 * (threadIdx.x % 32);
    const float* a_line = a + static_cast<usize>(top + a_row) * k;
    const usize a_length = top + a_row < m ? k : 0;
    Pack<float, 4> next_a, next_b;
    const auto fetch = [&](unsigned at) {
        next_a = load<4>(a_line, a_length, at + a_column, 0.0f);
        next_b = load<4>(b + static_cast<usize>(at + b_row) * n, at + b_row < k ? n : 0, left + b_column, 0.0f);
    };
    const auto put = [&](unsigned half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            a_tile[half][a_column + i][a_row] = next_a.element[i];
        }
        *reinterpret_cast<Pack<float, 4>*>(&b_tile[half][b_row][b_column]) = next_b;
    };

    const unsigned x = 4 * (threadIdx.x % 16), y = 4 * (threadIdx.x / 16);
    Pack<float, 4> sums[GROUPS][4][GROUPS] = {};
    fetch(0);
    put(0);
    __syncthreads();
    unsigned half = 0;
    for (unsigned at = 0; at < k; at += DEPTH) {
        fetch(at + DEPTH);
#pragma unroll
        for (int step = 0; step < DEPTH; ++step) {
            Pack<float, 4> column[GROUPS], row[GROUPS];
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                const int offset = group * C_SIDE / 2;
                column[group] = *reinterpret_cast<Pack<float, 4>*>(&a_tile[half][step][y + offset]);
                row[group] = *reinterpret_cast<Pack<float, 4>*>(&b_tile[half][step][x + offset]);
            }
#pragma unroll
            for (int down = 0; down < GROUPS; ++down) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                    for (int across = 0; across < GROUPS; ++across) {
#pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            sums[down][i][across].element[j] += column[down].element[i] * row[across].element[j];
                        }
                    }
                }
            }
        }
        half = 1 - half;
        put(half);
        __syncthreads();
    }
#pragma unroll
    for (int down = 0; down < GROUPS; ++down) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned row = top + y + down * C_SIDE / 2 + i;
#pragma unroll
            for (int across = 0; across < GROUPS; ++across) {
                store(c + static_cast<usize>(row) * n, row < m ? n : 0, left + x + across * C_SIDE / 2,
                      sums[down][i][across]);
            }
        }
    }
}

// Warp collectives, votes, matches, reductions, cooperative groups, named barriers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void shuffles(int *out, float f, double d, int v) {
  v += __shfl_sync(~0u, v, 3); v += __shfl_up_sync(~0u, v, 1, 16); v += __shfl_down_sync(0xFFFF, v, 2); v += __shfl_xor_sync(~0u, v, 4, 8); f = __shfl_sync(~0u, f, v); d = __shfl_xor_sync(~0u, d, 1); out[threadIdx.x] = v + f + d;
}
extern "C" __global__ void votes(unsigned *out, int p) { out[0] = __ballot_sync(~0u, p); out[1] = __any_sync(~0u, p) + __all_sync(7, p > 2); out[2] = __activemask(); int q; out[3] = __match_any_sync(~0u, p); out[4] = __match_all_sync(~0u, p, &q) + q; out[5] = __match_any_sync(~0u, (long long)p); __syncwarp(); __syncwarp(15); }
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void reductions(unsigned *out, unsigned v) { out[0] = __reduce_add_sync(~0u, v); out[1] = __reduce_min_sync(~0u, v); out[2] = __reduce_max_sync(~0u, (int)v); out[3] = __reduce_xor_sync(~0u, v); out[4] = __reduce_and_sync(3, v); }
#endif
extern "C" __global__ void barriers(int *out, int p) { __syncthreads(); out[0] = __syncthreads_count(p); out[1] = __syncthreads_and(p); out[2] = __syncthreads_or(p); asm volatile("bar.sync 1, 64;"); asm volatile("bar.arrive %0, 96;" ::"r"(p)); }
extern "C" __global__ void groups(int *out, int v) {
  auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<16>(block); auto warp = cg::tiled_partition<32>(block); auto active = cg::coalesced_threads();
  out[0] = cg::reduce(tile, v, cg::plus<int>()); out[1] = cg::inclusive_scan(warp, v); out[2] = active.shfl(v, 0); out[3] = tile.any(v); out[4] = cg::reduce(active, v, cg::greater<int>()); block.sync(); out[5] = block.group_dim().x; if (active.thread_rank() == 0) out[6] = active.size();
}
extern "C" __global__ void whole_grid(int *out) { auto grid = cg::this_grid(); out[grid.thread_rank()] = 1; grid.sync(); out[0] = out[grid.size() - 1]; }
extern "C" __global__ void coordinates(unsigned *out) { out[0] = threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.y; out[1] = blockIdx.x + blockIdx.y * gridDim.x + blockIdx.z * gridDim.y + gridDim.z; unsigned l, w, s, m; asm("mov.u32 %0, %%laneid;" : "=r"(l)); asm("mov.u32 %0, %%warpid;" : "=r"(w)); asm("mov.u32 %0, %%smid;" : "=r"(s)); asm("mov.u32 %0, %%lanemask_lt;" : "=r"(m)); out[2] = l + w + s + m + warpSize; }

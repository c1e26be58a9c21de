// Atomics of every type and scope, fences, counters, clocks.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void integers(int *a, unsigned *u, unsigned long long *l, long long *s) {
  atomicAdd(a, 1); a[1] = atomicSub(a, 2); atomicExch(a, 3); a[2] = atomicMin(a, 4); atomicMax(u, 5u); u[1] = atomicInc(u, 6); atomicDec(u, 7);
  a[3] = atomicCAS(a, 8, 9); atomicAnd(u, 10u); atomicOr(u, 11u); u[2] = atomicXor(u, 12u); atomicAdd(l, 13ull); l[1] = atomicCAS(l, 14ull, 15ull); atomicMax(s, 16ll); l[2] = atomicExch(l, 17ull);
}
extern "C" __global__ void floats(float *f, double *d, __half *h, __half2 *p, __nv_bfloat162 *b) { f[1] = atomicAdd(f, 1.f); atomicAdd(d, 2.0); atomicExch(f, 3.f); atomicAdd(h, h[1]); atomicAdd(p, p[1]); atomicAdd(b, b[1]); }
extern "C" __global__ void scopes(int *a) { a[1] = atomicAdd_block(a, 1); a[2] = atomicAdd_system(a, 2); atomicCAS_block(a, 3, 4); __threadfence_block(); __threadfence(); __threadfence_system(); }
extern "C" __global__ void in_shared(int *out) { __shared__ int s; __shared__ float f; if (!threadIdx.x) { s = 0; f = 0; } __syncthreads(); atomicAdd(&s, 1); atomicAdd(&f, 1.f); atomicCAS(&s, 5, 6); __syncthreads(); out[0] = s + (int)f; }
extern "C" __global__ void narrow(unsigned short *u) { u[1] = atomicCAS(u, (unsigned short)1, (unsigned short)2); }
extern "C" __global__ void standard(cuda::atomic<int, cuda::thread_scope_device> *a, cuda::atomic<long long, cuda::thread_scope_block> *b, int *out) {
  out[0] = a->load(cuda::memory_order_acquire); a->store(1, cuda::memory_order_release); out[1] = a->fetch_add(2, cuda::memory_order_relaxed);
  int e = 3; a->compare_exchange_strong(e, 4); b->fetch_max(5); cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system); a->wait(7); a->notify_all();
}
extern "C" __global__ void clocks(long long *out) { out[0] = clock(); out[1] = clock64(); unsigned g; asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(g)); out[2] = g; out[3] = __pm0(); __prof_trigger(1); }
extern "C" __global__ void lock(int *mutex, float *data) { while (atomicCAS(mutex, 0, 1)) {} __threadfence(); data[0] += 1; __threadfence(); atomicExch(mutex, 0); }

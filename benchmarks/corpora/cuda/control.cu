// Branches, loops, switches, calls, recursion, indirect and virtual calls, noinline functions, traps, assertions, printf.
#include <cassert>
#include <cstdio>
typedef int (*Function)(int, float);
__device__ __noinline__ int plus(int a, float b) { return a + (int)b; }
__device__ __noinline__ int times(int a, float b) { return a * (int)b; }
__device__ Function table[2] = {plus, times};
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
struct Wide { double a[5]; int b; };
__device__ __noinline__ Wide widen(Wide w, char c, short s, bool f) { w.b += c + s + f; w.a[2] *= 2; return w; }
__device__ __noinline__ void stop(int n) { printf("stop %d\n", n); __trap(); }
struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape { float side; __device__ float area() const override { return side * side; } };
struct Disc : Shape { float radius; __device__ float area() const override { return 3.14f * radius * radius; } };
template <int N, typename T> __device__ T power(T x) { if constexpr (N == 0) return 1; else return x * power<N - 1, T>(x); }
template <typename T> __global__ void templated(T *out, T x) { out[0] = power<5, T>(x) + power<3, T>(x); }
template __global__ void templated<float>(float *, float);
template __global__ void templated<unsigned short>(unsigned short *, unsigned short);

extern "C" __global__ void branches(int *out, int a, int b) { if (a < b) out[0] = 1; else if (a == b) out[0] = 2; else if (out[1] && out[2] || out[3]) out[0] = 3; }
extern "C" __global__ void loops(float *out, int n) {
  float s = 0; for (int i = 0; i < n; ++i) { if (out[i] < 0) continue; if (out[i] > 100) break; s += out[i]; }
  do { s *= 0.5f; } while (s > 1); 
#pragma unroll 1
  for (int i = 0; i < 10; ++i) out[i] = s;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[n + i] += i;
}
extern "C" __global__ void switches(int *out, int a) {
  switch (a) { case 0: out[0] = out[5]; break; case 1: out[1] = out[6]; case 2: out[2] = out[7]; break; case 3: out[3] = 1; break; case 4: out[9] = out[8]; break;
    case 5: out[11]++; break; case 6: out[12] = 77; break; default: out[4] = a; }
}
extern "C" __global__ void direct(int *out, int a, float b) { out[0] = plus(a, b) + times(a, b) + fibonacci(a); Wide w = {{1, 2, 3, 4, b}, a}; out[1] = widen(w, a, a, a > 1).b; if (a > 9) stop(a); }
extern "C" __global__ void indirect(int *out, int a, float b) { out[0] = table[a & 1](a, b); }
extern "C" __global__ void virtuals(float *out, int a) { Square s; s.side = a; Disc d; d.radius = a; const Shape *p = a & 1 ? (Shape *)&s : (Shape *)&d; out[0] = p->area(); }
extern "C" __global__ void asserts(int *out, int n) { assert(n > 0); if (out[n] == 3) __trap(); if (out[n] == 4) __brkpt(); if (out[n] == 5) __nanosleep(20); }
extern "C" __global__ void prints(int n, double d, const char *s) { printf("%d %f %s %%\n", n, d, s); printf("plain\n"); }
extern "C" __global__ void __launch_bounds__(256, 2) bounded(float *out) { out[threadIdx.x] += 1; }
extern "C" __global__ void __maxnreg__(64) few(float *out) { out[threadIdx.x] += 2; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(unsigned *out) { out[0] = __clusterRelativeBlockRank() + __clusterSizeInBlocks(); __cluster_barrier_arrive(); __cluster_barrier_wait(); }
#endif
extern "C" __global__ void selects(int *out, int a, float b, double c, long long d) { out[0] = a > 3 ? a : 7; out[1] = b > 2 ? 3.f : b; out[2] = c < 0 ? 1 : c; out[3] = d == 5; out[4] = !a ^ (b != b); }

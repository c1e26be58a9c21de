// Loads, stores, spaces, caches, vectors, constants, static and dynamic shared memory, local arrays, alignment, volatile.
struct alignas(16) Big { float x[12]; short y; char z; };
__constant__ float table[64] = {1.0f, 0.5f, 0.25f, -3e-5f};
__constant__ int matrix[3][4] = {{1, 2, 3, 4}, {5}, {6, 7}};
__constant__ const char *names[] = {"one", "two", nullptr};
__device__ double doubles[5] = {1.0, 2.5, 1e300};
__device__ unsigned long long counter = 0xFFFFFFFFFFFFFFFFull;
__device__ double *pointer = &doubles[3];
__device__ Big big = {{1, 2, 3}, 4, 5};
__managed__ int managed = 7;
extern __shared__ float dynamic[];
extern __device__ int elsewhere;

extern "C" __global__ void constants(float *out, int i) { out[i] = table[i & 63] + matrix[i % 3][i & 3] + names[i & 1][0]; }
extern "C" __global__ void globals(double *out, int i) { out[i] = doubles[i % 5] + *pointer + counter + big.x[i] + managed; counter += i; }
extern "C" __global__ void vectors(float4 *out, const float4 *__restrict__ in, double2 *d, short4 *s, uchar2 *c, longlong2 *l) {
  out[0] = in[1]; d[0] = d[1]; s[2] = s[3]; c[0] = c[1]; l[0] = l[5];
}
extern "C" __global__ void caches(int *out, const int *in, const float4 *v) {
  out[0] = __ldg(in) + __ldcg(in + 1) + __ldca(in + 2) + __ldcs(in + 3) + __ldlu(in + 4) + __ldcv(in + 5);
  __stwb(out + 1, 1); __stcg(out + 2, 2); __stcs(out + 3, 3); __stwt(out + 4, 4); float4 w = __ldg(v); out[5] = w.x + w.w;
}
extern "C" __global__ void shared_static(float *out, const float *in) {
  __shared__ float tile[32][33]; __shared__ double sum; __shared__ Big box;
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.x]; if (!threadIdx.x) { sum = 1; box.x[2] = 5; } __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x][threadIdx.y] + sum + box.x[2];
}
extern "C" __global__ void shared_dynamic(float *out, int n) {
  int *second = (int *)(dynamic + n); dynamic[threadIdx.x] = out[threadIdx.x]; second[threadIdx.x] = threadIdx.x; __syncthreads();
  out[threadIdx.x] = dynamic[n - 1 - threadIdx.x] * second[0];
}
extern "C" __global__ void locals(int *out, int i, int j) {
  int stack[40]; for (int k = 0; k < 40; ++k) stack[k] = k * i; stack[j & 31] = 9; out[0] = stack[i & 31];
}
extern "C" __global__ void volatiles(volatile int *flag, volatile double *d) { while (*flag == 0) {} d[1] = d[0] + 1; __threadfence(); *flag = 2; }
extern "C" __global__ void by_value(Big box, float3 v, char c, float *out) { out[c] = box.x[3] + v.z + box.y; }
extern "C" __global__ void external(int *out) { *out = elsewhere; }
extern "C" __global__ void spaces(int *out, void *p) {
  __shared__ int s; s = 1; out[0] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p) + 8 * __isConstant(p);
  out[1] = (int)__cvta_generic_to_shared(&s) + (long long)__cvta_generic_to_global(out);
}
extern "C" __global__ void copies(char *out, const char *in, size_t n) { memcpy(out, in, 64); memset(out + 64, 3, n); for (size_t i = 0; i < n; ++i) out[i + 99] = in[i]; }
extern "C" __global__ void heap(int **out, int n) { out[0] = (int *)malloc(n); out[1] = new int[n]; free(out[2]); delete[] out[3]; int *a = (int *)alloca(n); a[0] = n; out[4][0] = a[n >> 4]; }
extern "C" __global__ void grid_constant(const __grid_constant__ Big box, float *out) { const float *p = box.x; out[0] = p[threadIdx.x % 12]; }

// Scalar arithmetic of every width: integers with carry, floats in each rounding, fast mathematics, half and packed types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void integers(long long *out, const long long *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long a = in[i], b = in[n - 1 - i];
  out[i] = a * b + (a / (b | 1)) - (a % (b | 3)) + (a >> (b & 63)) + (a << 3) + __mul64hi(a, b);
}
extern "C" __global__ void unsigned_wide(unsigned __int128 *out, unsigned __int128 a, unsigned __int128 b) {
  out[0] = a * b; out[1] = a + b; out[2] = a - b; out[3] = a / (b | 1); out[4] = a >> 7;
}
extern "C" __global__ void bits(unsigned *out, unsigned a, unsigned b, unsigned c) {
  out[0] = __popc(a) + __clz(b) + __ffs(c) + __brev(a); out[1] = __byte_perm(a, b, c);
  out[2] = __funnelshift_l(a, b, c); out[3] = __funnelshift_rc(a, b, c); out[4] = (a & b) ^ (~c | a);
  out[5] = __sad(a, b, c); out[6] = __umulhi(a, b); out[7] = __uhadd(a, b); out[8] = __urhadd(a, b);
  out[9] = __fns(a, 3, 2); out[10] = __vadd2(a, b); out[11] = __vabsdiffu4(a, b); out[12] = __vcmpgts2(a, b);
}
extern "C" __global__ void bits64(unsigned long long *out, unsigned long long a) {
  out[0] = __popcll(a); out[1] = __clzll(a); out[2] = __brevll(a); out[3] = __ffsll(a);
}
extern "C" __global__ void dots(int *out, int a, int b, int c) {
  out[0] = __dp4a(a, b, c); out[1] = __dp2a_lo(a, b, c); out[2] = __dp2a_hi((unsigned)a, (unsigned)b, (unsigned)c);
}
extern "C" __global__ void floats(float *out, float a, float b, float c) {
  out[0] = __fmaf_rn(a, b, c); out[1] = __fmaf_rz(a, b, c); out[2] = __fmaf_ru(a, b, c); out[3] = __fmaf_rd(a, b, c);
  out[4] = __fadd_rz(a, b); out[5] = __fmul_ru(a, b); out[6] = __frcp_rn(a); out[7] = __fsqrt_rd(a); out[8] = a / b;
  out[9] = fminf(a, fmaxf(b, c)); out[10] = copysignf(a, b); out[11] = __saturatef(c); out[12] = rintf(a) + floorf(b) + ceilf(c) + truncf(a);
  out[13] = __fdividef(a, b); out[14] = rsqrtf(a); out[15] = fmodf(a, b); out[16] = isnan(a) ? b : c; out[17] = cbrtf(a);
}
extern "C" __global__ void fast(float *out, float a) {
  out[0] = __sinf(a); out[1] = __cosf(a); out[2] = __expf(a); out[3] = __logf(a); out[4] = __powf(a, 2.5f); out[5] = __tanf(a); out[6] = __exp10f(a);
}
extern "C" __global__ void library(float *out, float a) {
  out[0] = sinf(a); out[1] = cosf(a); out[2] = expf(a); out[3] = logf(a); out[4] = powf(a, 2.5f); out[5] = tanhf(a); out[6] = erff(a);
  out[7] = lgammaf(a); out[8] = atan2f(a, 2); out[9] = hypotf(a, 3); out[10] = j0f(a); out[11] = normcdff(a);
}
extern "C" __global__ void doubles(double *out, double a, double b, double c) {
  out[0] = fma(a, b, c); out[1] = a / b; out[2] = sqrt(a); out[3] = sin(a); out[4] = exp(b); out[5] = log(c); out[6] = pow(a, b);
  out[7] = __dmul_rd(a, b); out[8] = __drcp_ru(a); out[9] = fmin(a, b); out[10] = rint(c); out[11] = cyl_bessel_i0(a); out[12] = tgamma(b);
}
extern "C" __global__ void conversions(void *out, float f, double d, int i, unsigned long long u, short s, unsigned char c) {
  float *o = (float *)out; int *p = (int *)out; long long *q = (long long *)out; double *r = (double *)out;
  o[0] = i; o[1] = u; o[2] = d; o[3] = s; o[4] = c; o[5] = __int2float_rz(i); o[6] = __double2float_ru(d);
  p[8] = f; p[9] = d; p[10] = __float2int_ru(f); p[11] = (short)f; p[12] = (signed char)i; p[13] = __float_as_int(f); p[14] = __double2hiint(d);
  q[10] = f; q[11] = d; q[12] = __double2ll_rd(d); q[13] = i; q[14] = __double_as_longlong(d); r[20] = f; r[21] = u; r[22] = __hiloint2double(i, 3);
}
extern "C" __global__ void halves(__half *out, __half a, __half b, __half c) {
  out[0] = __hfma(a, b, c); out[1] = __hadd_sat(a, b); out[2] = __hdiv(a, b); out[3] = hexp(a); out[4] = hsqrt(b); out[5] = __hmax(a, b);
  out[6] = __hgt(a, b) ? a : c; out[7] = __int2half_rz(3); out[8] = __float2half_rn(2.5f); out[9] = __habs(a); out[10] = hsin(c); out[11] = __hneg(a);
}
extern "C" __global__ void half_pairs(__half2 *out, __half2 a, __half2 b, __half2 c) {
  out[0] = __hfma2(a, b, c); out[1] = __hmul2(a, b); out[2] = __hmin2(a, b); out[3] = __lows2half2(a, b); out[4] = h2rcp(a); out[5] = __hfma2_relu(a, b, c);
}
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void brains(__nv_bfloat16 *out, __nv_bfloat162 *pairs, __nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat162 c, float f) {
  out[0] = __hfma(a, b, a); out[1] = __float2bfloat16(f); out[2] = a + b; out[3] = a / b; out[4] = hlog(a); pairs[4] = __hfma2(c, c, c);
  pairs[5] = __floats2bfloat162_rn(f, 2 * f); pairs[6] = __hmax2(c, c);
}
#endif
extern "C" __global__ void eighths(__nv_fp8x4_e4m3 *out, float4 v, __nv_fp8x2_e5m2 *pairs, float2 w, float *back) {
  out[0] = __nv_fp8x4_e4m3(v); pairs[1] = __nv_fp8x2_e5m2(w); float2 f = (float2)pairs[0]; back[0] = f.x + f.y;
}

# SPDX-License-Identifier: MIT
"""The conformance test's CUDA sources, and what they print: python3 generate.py FOLDER nvcc -std=c++17 -arch=native >h200.txt

A line of a table has the type of the results, the arguments, and the functions: `float F F: atan2f@3` is float atan2f(float, float),
whose error is up to 3 ulp. {a,b} stands for both. An item that names its arguments (F0, D1 …; see ARGUMENTS) is an expression, and
`call->n` is what the call stores in n. The errors are those of the CUDA C++ Programming Guide, or follow from them."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ARGUMENT = re.compile(r"\b([FDIULMHBPQ])([0-3])\b")
HALF_OF, BFLOAT_OF = ("__ushort_as_half(in.h[{0}][%s])", "__ushort_as_bfloat16(in.b[{0}][%s])")
ARGUMENTS = {  # letter: name of the type, and the argument with this number
    "F": ("float", "in.f[{}][i]"), "D": ("double", "in.d[{}][i]"), "U": ("unsigned", "in.u[{}][i]"), "I": ("int", "(int)in.u[{}][i]"),
    "M": ("ulonglong", "in.m[{}][i]"), "L": ("longlong", "(llong)in.m[{}][i]"), "H": ("half", HALF_OF % "i"),
    "B": ("bfloat16", BFLOAT_OF % "i"), "P": ("half2", f"__halves2half2({HALF_OF % 'i'},{HALF_OF % '(i+37)%INPUTS'})"),
    "Q": ("bfloat162", f"__halves2bfloat162({BFLOAT_OF % 'i'},{BFLOAT_OF % '(i+37)%INPUTS'})"),
}  # fmt: skip

# Exact values of the arguments x, y, z, t, where this is not the function of the C library or of exact.h whose name ends with l
EXACT = {
    "sinpi": "sine_of_pi(x)", "cospi": "cosine_of_pi(x)",
    "rsqrt": "1/sqrtl(x)", "rcbrt": "1/cbrtl(x)", "exp10": "powl(10,x)", "rhypot": "1/hypotl(x,y)", "rcp": "1/x", "fdivide": "x/y",
    "norm3d": "length(x,y,z)", "rnorm3d": "1/length(x,y,z)", "norm_of": "length(x,y,z)", "rnorm_of": "1/length(x,y,z)",
    "norm4d": "length(x,y,z,t)", "rnorm4d": "1/length(x,y,z,t)", "erfcx": "erfcxl(x)", "normcdf": "erfcl(x/-sqrtl(2))/2",
    "normcdfinv": "0-sqrtl(2)*erfcinvl(2*x)", "cyl_bessel_i0": "bessel_i(0,x)", "cyl_bessel_i1": "bessel_i(1,x)",
    "pow": "powl(x,std::clamp<Real>(y,-0x1p62L,0x1p62L))", "jn": "jnl((int)x&7,y)", "yn": "ynl((int)x&7,y)", "tanh_approx": "tanhl(x)",
}  # fmt: skip

LIMITS = {  # limits that depend on the arguments
    "float-j": "fabsl(x)<8?9:absolute(2.2e-6,ulp)", "double-j": "fabsl(x)<8?7:absolute(5e-12,ulp)",
    "float-jn": "fabsl(y)>0.01L?absolute(2.2e-6,ulp):INFINITY", "double-jn": "fabsl(y)>0.01L?absolute(5e-12,ulp):INFINITY",
    "float-yn": "fabsl(y)<((int)x&7)?ceill(2+2.5L*((int)x&7)):std::max<Real>(2,absolute(2.2e-6,ulp))",
    "double-yn": "fabsl(y)>1.5L*((int)x&7)?absolute(5e-12,ulp):INFINITY",
    "float-lgamma": "x<-10.001L||x>-2.264L?6:INFINITY", "double-lgamma": "x<-11.0001L||x>-2.2637L?4:INFINITY",
    "exp": "2+floorl(fabsl(1.173L*x))", "exp10": "2+floorl(fabsl(2.97L*x))",
    "log": "x>=0.5L&&x<=2?absolute(exp2l(-21.41L),ulp):3", "log2": "x>=0.5L&&x<=2?absolute(exp2l(-22),ulp):2",
    "log10": "x>=0.5L&&x<=2?absolute(exp2l(-24),ulp):3", "sin": "fabsl(x)<=3.14159L?absolute(exp2l(-21.41L),ulp):INFINITY",
    "cos": "fabsl(x)<=3.14159L?absolute(exp2l(-21.19L),ulp):INFINITY",
    "tan": "fabsl(x)<=3.14159L?absolute((exp2l(-21.41L)+fabsl(exact)*exp2l(-21.19L))/fabsl(cosl(x)),ulp):INFINITY",
    "tanh": "absolute(fabsl(exact)*exp2l(-11),ulp)", "fdivide": "fabsl(y)>=0x1p-126L&&fabsl(y)<=0x1p126L?2:INFINITY",
    "pow": "x>0&&x<INFINITY&&fabsl(y)<INFINITY?2+absolute(fabsl(exact*y)*std::max(exp2l(-22),fabsl(log2l(x))*0x1p-22L),ulp):INFINITY",
}  # fmt: skip


FLOAT = """
float F: {sin,cos,sinpi,cospi,rsqrt,atan,cosh,tanh,exp,exp2,exp10,log10,erf,erfinv,erfcinv}f@2 {sinh,acos,asinh,atanh}f@3
float F: {tan,asin,acosh,erfc,erfcx}f@4
float F: {expm1,log,log2,log1p,cbrt,rcbrt}f@1 {normcdf,normcdfinv}f@5 tgammaf@11 lgammaf@float-lgamma cyl_bessel_i{0,1}f@6
float F: {j0,j1,y0,y1}f@float-j
float F: {sqrt,floor,ceil,trunc,round,rint,nearbyint,fabs,logb}f __saturatef __frsqrt_rn __f{rcp,sqrt}_{rn,rz,ru,rd}
float F: __expf@exp __exp10f@exp10 __logf@log __log2f@log2 __log10f@log10 __sinf@sin __cosf@cos __tanf@tan __tanhf@tanh
float F F: __powf@pow __fdividef@fdivide fdividef@2
float F F: {atan2,hypot}f@3 rhypotf@2 powf@8 {fmod,remainder,fmin,fmax,fdim,copysign,nextafter}f __f{add,sub,mul,div}_{rn,rz,ru,rd}
float F F: min max std::fmin std::fmax fmin fmax F0+F1 F0-F1 F0*F1 F0/F1
float F F F: fmaf norm3df@3 rnorm3df@2 norm_of@4 rnorm_of@3 __fmaf_{rn,rz,ru,rd} __fmaf_ieee_{rn,rz,ru,rd}
float F F F F: norm4df@3 rnorm4df@2
float F: sin@2 cos@2 exp@2 log@1 sqrt rsqrt@2 rcbrt@1 sinpi@2 cospi@2 exp10@2 erfinv@2 erfcinv@4 erfcx@4 normcdf@5 normcdfinv@5
float F: {j0,j1,y0,y1}@float-j
float: frexpf(F0,&n) modff(F0,&p) modff(F0,&p)->p remquof(F0,F1,&n) ldexpf(F0,I1%300) scalbnf(F0,I1%300) scalblnf(F0,I1%300) F0*0.5f
float: sincosf(F0,&p,&q)->p@2#sin sincosf(F0,&p,&q)->q@2#cos sincospif(F0,&p,&q)->p@2#sinpi sincospif(F0,&p,&q)->q@2#cospi
float: __sincosf(F0,&p,&q)->p@sin#sin __sincosf(F0,&p,&q)->q@cos#cos jnf(I1&7,F0)@float-jn ynf(I1&7,F0)@float-yn
int: frexpf(F0,&n)->n p=remquof(F0,F1,&n)->p==p?n&7:0 ilogbf(F0) isnan(F0) isinf(F0) isfinite(F0) signbit(F0) F0==F1 F0!=F1 F0<F1 F0<=F1
int: !F0
"""
DOUBLE = """
double D: {sin,cos,sinpi,cospi,sinh,cosh,tanh,acos}@1 {tan,asin,atan,asinh,acosh,atanh,erf}@2
double D: {exp,exp2,exp10,expm1,log,log2,log10,log1p}@1
double D: {rsqrt,cbrt,rcbrt}@1 erfc@4 erfinv@5 erfcinv@6 erfcx@3 normcdf@5 normcdfinv@7 tgamma@8 lgamma@double-lgamma cyl_bessel_i{0,1}@6
double D: {j0,j1,y0,y1}@double-j sqrt floor ceil trunc round rint nearbyint fabs logb __d{rcp,sqrt}_{rn,rz,ru,rd}
double D D: atan2@2 hypot@2 rhypot@1 pow@2 fmod remainder fmin fmax fdim copysign nextafter fdivide __d{add,sub,mul,div}_{rn,rz,ru,rd}
double D D: min max D0+D1 D0-D1 D0*D1 D0/D1
double D D D: fma norm3d@2 rnorm3d@1 norm_of@3 rnorm_of@2 __fma_{rn,rz,ru,rd}
double D D D D: norm4d@2 rnorm4d@1
double: {min,max}(F0,D1) {min,max}(D0,F1)
double: frexp(D0,&n) modf(D0,&r) modf(D0,&r)->r remquo(D0,D1,&n) ldexp(D0,I1%2200) scalbn(D0,I1%2200) scalbln(D0,I1%2200)
double: sincos(D0,&r,&s)->r@1#sin sincos(D0,&r,&s)->s@1#cos sincospi(D0,&r,&s)->r@1#sinpi sincospi(D0,&r,&s)->s@1#cospi
double: jn(I1&7,D0)@double-jn yn(I1&7,D0)@double-yn
int: frexp(D0,&n)->n r=remquo(D0,D1,&n)->r==r?n&7:0 ilogb(D0) isnan(D0) isinf(D0) isfinite(D0) signbit(D0) D0==D1 D0!=D1 D0<D1 D0<=D1 !D0
"""
INTEGER = """
int U: __popc
int M: __popcll
int I: __clz __ffs abs
int L: __clzll __ffsll
long L: labs
llong L: llabs
unsigned U: __brev
ullong M: __brevll
int I I: __mul24 __mulhi __hadd __rhadd min max I0/(I1&0x7fffffff|1) I0%(I1&0x7fffffff|1) I0<<(I1&31) I0>>(I1&31) I0<<I1 I0>>I1
unsigned U U: __umul24 __umulhi __uhadd __urhadd umin umax min max U0/(U1|1) U0%(U1|1) U0<<U1 U0>>U1
unsigned: {min,max}(U0,I1) {min,max}(I0,U1) __fns(U0,U1&31,I2%34)
llong L L: __mul64hi llmin llmax min max L0<<M1 L0>>M1 L0/(L1&0x7fffffffffff|1) L0%(L1&0x7fffffffffff|1)
ullong M M: __umul64hi ullmin ullmax min max M0<<M1 M0>>M1 M0/(M1|1) M0%(M1|1)
ullong: {min,max}(M0,L1) {min,max}(L0,M1)
long: {min,max}((long)L0,(long)L1)
unsigned U U U: __byte_perm __funnelshift_{l,lc,r,rc} __usad __dp4a __dp2a_{lo,hi}
int I I I: __dp4a __dp2a_{lo,hi}
unsigned I I U: __sad
unsigned U: __v{abs,absss,neg,negss}{2,4}
unsigned U U: __v{add,addss,addus,sub,subss,subus,absdiffs,absdiffu,avgs,avgu,haddu,maxs,maxu,mins,minu,sads,sadu}{2,4}
unsigned U U: __v{cmp,set}{eq,ne,ges,geu,gts,gtu,les,leu,lts,ltu}{2,4}
int I I I: __vi{max3,min3,addmax,addmin}_s32 __vi{max3,min3,addmax,addmin}_s32_relu
unsigned U U U: __vi{max3,min3,addmax,addmin}_{u32,u16x2,s16x2} __vi{max3,min3,addmax,addmin}_s16x2_relu
int I I: __vi{max,min}_s32_relu
unsigned U U: __vi{max,min}_s16x2_relu
int: __vib{max,min}_s32(I0,I1,&b) __vib{max,min}_s32(I0,I1,&b)->b __vib{max,min}_u32(U0,U1,&b)->b
unsigned: __vib{max,min}_u32(U0,U1,&b) __vib{max,min}_{s,u}16x2(U0,U1,&b,&c) __vib{max,min}_{s,u}16x2(U0,U1,&b,&c)->b*2+c
int F: __float2int_{rn,rz,ru,rd} __float_as_int
unsigned F: __float2uint_{rn,rz,ru,rd} __float_as_uint
llong F: __float2ll_{rn,rz,ru,rd}
ullong F: __float2ull_{rn,rz,ru,rd}
int D: __double2int_{rn,rz,ru,rd} __double2hiint __double2loint
unsigned D: __double2uint_{rn,rz,ru,rd}
llong D: __double2ll_{rn,rz,ru,rd} __double_as_longlong
ullong D: __double2ull_{rn,rz,ru,rd}
float I: __int2float_{rn,rz,ru,rd} __int_as_float (float)I0
float U: __uint2float_{rn,rz,ru,rd} __uint_as_float (float)U0
float L: __ll2float_{rn,rz,ru,rd} (float)L0
float M: __ull2float_{rn,rz,ru,rd} (float)M0
float D: __double2float_{rn,rz,ru,rd} (float)D0
double I: __int2double_rn (double)I0
double U: __uint2double_rn (double)U0
double L: __ll2double_{rn,rz,ru,rd} __longlong_as_double (double)L0
double M: __ull2double_{rn,rz,ru,rd} (double)M0
double: (double)F0 __hiloint2double(I0,I1)
"""
CASTS = """
char: ({char,schar,uchar,short,ushort}){F0,D0} (int)(uchar)F0
long: ({int,unsigned,long,ulong,llong,ullong}){F0,D0} lrint{f(F0),(D0)} lround{f(F0),(D0)} llrint{f(F0),(D0)} llround{f(F0),(D0)}
char: F0 D0
schar: F0 D0
uchar: F0 D0
short: F0 D0
ushort: F0 D0
int: F0 D0 F0*3
unsigned: F0 D0
long: F0 D0
ulong: F0 D0
llong: F0 D0
ullong: F0 D0
"""
# For half and bfloat16: $H and $HH are the types of a number and of a pair, $w and $ww their words in names, $a and $p the arguments.
HALF = """
$H $a: h{exp,exp2,exp10,log,log2,log10,rsqrt,rcp,tanh}@1 h{sin,cos}@2 htanh_approx@1 h{sqrt,floor,ceil,trunc,rint} __hneg __habs -$a0
$HH $p: h2{exp,exp2,exp10,log,log2,log10,rsqrt,rcp,tanh}@1 h2{sin,cos}@2 h2tanh_approx@1
$HH $p: h2{sqrt,floor,ceil,trunc,rint} __h{neg,abs}2 -$p0 __lowhigh2highlow __{low,high}2$ww __hisnan2
$H $a $a: __h{add,sub,mul}{,_rn,_sat} __hdiv __h{max,min}{,_nan} $a0+$a1 $a0-$a1 $a0*$a1 $a0/$a1
$H $a $a $a: __hfma{,_sat,_relu}
$HH $p $p: __h{add,sub,mul}2{,_rn,_sat} __h2div __h{max,min}2{,_nan} $p0+$p1 $p0-$p1 $p0*$p1 $p0/$p1 __{lows,highs}2$ww
$HH $p $p: __h{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu}2
$HH $p $p $p: __hfma2{,_sat,_relu} __hcmadd
bool $a $a: __h{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu} $a0==$a1 $a0!=$a1 $a0<$a1 $a0<=$a1 $a0>$a1 $a0>=$a1
bool $p $p: __hb{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu}2 $p0==$p1 $p0!=$p1 $p0<$p1 $p0<=$p1 $p0>$p1 $p0>=$p1
unsigned $p $p: __h{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu}2_mask
int $a: __hisnan __hisinf (bool)$a0
$H F: __float2$w{,_rn,_rz,_ru,_rd} ($H)F0
$H D: __double2$w ($H)D0
$H: __{int,short}2$w_{rn,rz,ru,rd}(I0) __{uint,ushort}2$w_{rn,rz,ru,rd}(U0) __ll2$w_{rn,rz,ru,rd}(L0) __ull2$w_{rn,rz,ru,rd}(M0)
$H: ($H){I,U,L,M}0 ($H)(short)I0 ($H)(ushort)U0 __low2$w($p0) __high2$w($p0)
float: __$w2float($a0) (float)$a0 __low2float($p0) __high2float($p0)
float2 $p: __$ww2float2
short $a: __$w2short_{rn,rz,ru,rd} (short)$a0 __$w_as_short
ushort $a: __$w2ushort_{rn,rz,ru,rd} (ushort)$a0 __$w_as_ushort
int $a: __$w2int_{rn,rz,ru,rd} (int)$a0
unsigned $a: __$w2uint_{rn,rz,ru,rd} (unsigned)$a0
llong $a: __$w2ll_{rn,rz,ru,rd} (llong)$a0
ullong $a: __$w2ull_{rn,rz,ru,rd} (ullong)$a0
schar $a: __$w2char_rz (schar)$a0
uchar $a: __$w2uchar_rz (uchar)$a0
$HH: __float2$ww_rn(F0) __floats2$ww_rn(F0,F1) __float22$ww_rn(make_float2(F0,F1)) __$w2$ww($a0) __halves2$ww($a0,$a1) make_$ww($a0,$a1)
"""
FP8 = """
uchar: __nv_cvt_float_to_fp8(F0,__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
uchar: __nv_cvt_double_to_fp8(D0,__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
ushort: __nv_cvt_float2_to_fp8x2(make_float2(F0,F1),__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
ushort: __nv_cvt_double2_to_fp8x2(make_double2(D0,D1),__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
uchar: __nv_cvt_halfraw_to_fp8(H0,__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
uchar: __nv_cvt_bfloat16raw_to_fp8(B0,__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
ushort: __nv_cvt_halfraw2_to_fp8x2(P0,__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
ushort: __nv_cvt_bfloat16raw2_to_fp8x2(Q0,__NV_{NOSAT,SATFINITE},__NV_{E4M3,E5M2})
uchar: __nv_fp8_{e4m3,e5m2}({F,D,I,U,L,M,H,B}0).__x
ushort: __nv_fp8x2_{e4m3,e5m2}({make_float2(F0;F1),make_double2(D0;D1),P0,Q0}).__x
unsigned: __nv_fp8x4_{e4m3,e5m2}(make_float4(F0,F1,F2,F3)).__x
half: (half)__nv_cvt_fp8_to_halfraw((uchar)U0,__NV_{E4M3,E5M2})
half2: (half2)__nv_cvt_fp8x2_to_halfraw2((ushort)U0,__NV_{E4M3,E5M2})
float: (float)fp8<__nv_fp8_{e4m3,e5m2}>(U0)
float2: (float2)fp8<__nv_fp8x2_{e4m3,e5m2}>(U0)
float4: (float4)fp8<__nv_fp8x4_{e4m3,e5m2}>(U0)
double: (double)fp8<__nv_fp8_{e4m3,e5m2}>(U0)
int: (int)fp8<__nv_fp8_{e4m3,e5m2}>(U0) (bool)fp8<__nv_fp8_{e4m3,e5m2}>(U0)
"""
WARP = """
int: __shfl_{,up_,down_,xor_}sync(~0u,I0,block,{32,16,8,4,2,1}) __shfl_{,up_,down_,xor_}sync(~0u,I0,U1,{32,8})
int: __shfl_{,up_,down_,xor_}sync(~0u,(short)I0,block)
unsigned: __shfl_{,up_,down_,xor_}sync(~0u,U0,block,{32,8})
long: __shfl_{,up_,down_,xor_}sync(~0u,(long)L0,block,{32,8})
ulong: __shfl_{,up_,down_,xor_}sync(~0u,(ulong)M0,block,{32,8})
llong: __shfl_{,up_,down_,xor_}sync(~0u,L0,block,{32,8})
ullong: __shfl_{,up_,down_,xor_}sync(~0u,M0,block,{32,8})
float: __shfl_{,up_,down_,xor_}sync(~0u,F0,block,{32,8})
double: __shfl_{,up_,down_,xor_}sync(~0u,D0,block,{32,8})
half: __shfl_{,up_,down_,xor_}sync(~0u,H0,block,{32,8})
half2: __shfl_{,up_,down_,xor_}sync(~0u,P0,block,{32,8})
bfloat16: __shfl_{,up_,down_,xor_}sync(~0u,B0,block,{32,8})
bfloat162: __shfl_{,up_,down_,xor_}sync(~0u,Q0,block,{32,8})
int: (lane<16?__shfl_{,up_,down_,xor_}sync(0xffff,I0,block&15,16):__shfl_{,up_,down_,xor_}sync(0xffff0000,I0,3,{16,4}))
int: (lane%2?__shfl_sync(0xaaaaaaaa,I0,block|1):__shfl_xor_sync(0x55555555,I0,block&30)) (lane%3?0:__reduce_add_sync(0x49249249,I0))
unsigned: __ballot_sync(~0u,U0>>block%32&1) (lane<block%32?__ballot_sync((1u<<block%32)-1,I0>0):0)
unsigned: __match_any_sync(~0u,{U0%(block+1),M0%(block+1),F0,D0}) __match_all_sync(~0u,U0%(block%4+1),&n) __match_all_sync(~0u,D0*0,&n)
int: __any_sync(~0u,U0%32==block%32) __all_sync(~0u,U0%41!=block%41) __match_all_sync(~0u,U0%(block%4+1),&n)->n
int: __reduce_{add,min,max}_sync(~0u,I0) (lane<block%32?__reduce_{add,min,max}_sync((1u<<block%32)-1,I0):0)
unsigned: __reduce_{add,min,max,and,or,xor}_sync(~0u,U0)
int: __syncthreads_count(U0%67>block) (!!__syncthreads_and(U0%67>block)) (!!__syncthreads_or(U0%67>block))
int: TILE({1,2,4,8,16,32}).shfl{,_up,_down}(I0,block%32) TILE({2,4,8,16,32}).shfl_xor(I0,1) TILE({16,32}).shfl_xor(I0,block%16)
double: TILE({4,32}).shfl{,_up,_down,_xor}(D0,3)
unsigned: TILE({1,4,16,32}).{any,all,ballot}(U0%5>block%5) TILE({1,4,16,32}).match_any(U0%4) TILE({1,4,16,32}).match_all(U0%(block%3+1),n)
unsigned: TILE({1,4,16,32}).{thread_rank,meta_group_rank,meta_group_size,num_threads}()
unsigned: PART({1,4,16}).{thread_rank,meta_group_rank,meta_group_size,num_threads}()
int: cg::reduce(TILE({4,16,32}),I0,cg::{plus,less,greater,bit_and,bit_or,bit_xor}<int>())
int: cg::{inclusive,exclusive}_scan(TILE({4,16,32}),I0)
int: cg::inclusive_scan(TILE({4,16,32}),I0,cg::{less,greater}<int>())
int: (lane%3?COALESCED.shfl(I0,block%20):0) (lane%3?COALESCED.shfl_{up,down}(I0,block%20):0)
int: (lane%3?cg::reduce(COALESCED,I0,cg::plus<int>()):0)
unsigned: (lane%3?COALESCED.{thread_rank,num_threads,meta_group_rank,meta_group_size}():0)
unsigned: (lane%3?COALESCED.{any,all,ballot}(U0%5>block%5):0)
unsigned: cg::binary_partition(TILE({4,8,32}),U0%{3,4}<2).{thread_rank,num_threads,meta_group_rank,meta_group_size}()
unsigned: cg::labeled_partition(TILE({8,32}),U0%3).{thread_rank,num_threads,meta_group_size}()
"""
# What a thread does to a number of its own, to which p points, in global and in shared memory. The first argument is the number before.
ATOMIC = """
int I: atomic{Add,Sub,Exch,Min,Max,And,Or,Xor}{,_block,_system}(p,I1) atomicCAS{,_block,_system}(p,lane%2?I0:I1,I2)
unsigned U: atomic{Add,Sub,Exch,Min,Max,And,Or,Xor,Inc,Dec}{,_block,_system}(p,U1) atomicCAS{,_block,_system}(p,lane%2?U0:U1,U2)
llong L: atomic{Min,Max,And,Or,Xor}{,_block,_system}(p,L1)
ullong M: atomic{Add,Exch,Min,Max,And,Or,Xor}{,_block,_system}(p,M1) atomicCAS{,_block,_system}(p,lane%2?M0:M1,M2)
ushort U: atomicCAS(p,(ushort)(lane%2?U0:U1),(ushort)U2)
float F: atomic{Add,Exch}{,_block,_system}(p,F1)
double D: atomicAdd{,_block,_system}(p,D1)
half H: atomicAdd(p,H1)
half2 P: atomicAdd(p,P1)
bfloat16 B: atomicAdd(p,B1)
bfloat162 Q: atomicAdd(p,Q1)
int I: __nv_atomic_fetch_{add,sub,and,or,xor,min,max}(p,I1,__NV_ATOMIC_RELAXED,__NV_THREAD_SCOPE_DEVICE)
unsigned U: __nv_atomic_fetch_add(p,U1,__NV_ATOMIC_{RELAXED,ACQUIRE,RELEASE,ACQ_REL,SEQ_CST},__NV_THREAD_SCOPE_{BLOCK,DEVICE,SYSTEM})
ullong M: __nv_atomic_fetch_{add,min,max}(p,M1,__NV_ATOMIC_RELAXED,__NV_THREAD_SCOPE_BLOCK)
int I: __nv_atomic_exchange_n(p,I1,__NV_ATOMIC_RELAXED,__NV_THREAD_SCOPE_DEVICE)
float F: __nv_atomic_fetch_add(p,F1,__NV_ATOMIC_RELAXED,__NV_THREAD_SCOPE_DEVICE)
int I: cuda::atomic_ref<int,cuda::thread_scope_{block,device,system}>(*p).{fetch_add,fetch_sub,fetch_and,fetch_or}(I1)
int I: cuda::atomic_ref<int,cuda::thread_scope_{block,device,system}>(*p).{fetch_xor,fetch_min,fetch_max,exchange}(I1)
unsigned U: cuda::atomic_ref<unsigned,cuda::thread_scope_device>(*p).{fetch_add,fetch_sub,fetch_and,fetch_or}(U1)
unsigned U: cuda::atomic_ref<unsigned,cuda::thread_scope_device>(*p).{fetch_xor,fetch_min,fetch_max,exchange}(U1)
ullong M: cuda::atomic_ref<ullong,cuda::thread_scope_device>(*p).{fetch_add,fetch_sub,fetch_and,fetch_or}(M1)
ullong M: cuda::atomic_ref<ullong,cuda::thread_scope_device>(*p).{fetch_xor,fetch_min,fetch_max,exchange}(M1)
float I: cuda::atomic_ref<float,cuda::thread_scope_device>(*p).{fetch_add,fetch_sub,exchange}(I1/8.0f)
"""
# What many threads do to one number, which is 0 before: p is one for each block, and every one for many blocks.
SUMS = """
int: atomic{Add,Sub,Min,Max,And,Or,Xor}{,_block}(p,I0) atomic{Add,Sub,Min,Max,And,Or,Xor}{,_system}(every,I0)
unsigned: atomic{Add,Sub,Min,Max,And,Or,Xor}{,_block}(p,U0) atomic{Add,Sub,Min,Max,And,Or,Xor}{,_system}(every,U0)
unsigned: atomic{Inc,Dec}(every,100)
llong: atomic{Min,Max,And,Or,Xor}{,_block}(p,L0) atomic{Min,Max,And,Or,Xor}{,_system}(every,L0)
ullong: atomic{Add,Min,Max,And,Or,Xor}{,_block}(p,M0) atomic{Add,Min,Max,And,Or,Xor}{,_system}(every,M0)
float: atomicAdd{,_block}(p,(float)(U0%999)) atomicAdd{,_system}(every,(float)(U0%999))
double: atomicAdd{,_block}(p,(double)(U0%999)) atomicAdd{,_system}(every,(double)(U0%999))
half: atomicAdd(every,(half)(lane%2))
half2: atomicAdd(every,half2(lane%2,lane%4==0))
bfloat16: atomicAdd(p,(bfloat16)(lane%2))
bfloat162: atomicAdd(p,bfloat162(lane%2,lane%4==0))
float2: atomicAdd(every,make_float2(lane,1))
float4: atomicAdd(every,make_float4(lane,1,2,block))
"""
# Fetches of textures, width, height and depth or layers (0: not there), and what the memory is
FETCHES = """
tex1D<float>(t,X) 8,0,0 0
tex2D<float>(t,X,Y) 8,4,0 0
tex2D<float>(t,X,Y) 8,4,0 PITCHED
tex3D<float>(t,X,Y,Z) 8,4,4 0
tex1DLayered<float>(t,X,LAYER) 8,0,5 cudaArrayLayered
tex2DLayered<float>(t,X,Y,LAYER) 8,4,5 cudaArrayLayered
"""
ADDRESSES = [("Clamp", 0), ("Border", 0), ("Clamp", 1), ("Border", 1), ("Wrap", 1), ("Mirror", 1)]
FORMATS = dict(
    schar="int",
    uchar="uint",
    short="int",
    ushort="uint",
    uchar2="uint2",
    uchar4="uint4",
    ushort4="uint4",
    short2="int2",
)


def texture(
    fetch, size, memory, texel="float", filtering="Point", mode="Clamp", normalized=0, read="ElementType"
):
    """The arguments of TEXTURE after the number: name, result, fetch, no arguments, (texture)"""
    name = f"{fetch},{texel},{filtering},{mode},{'normalized' if normalized else 'texels'}{',pitched' * (memory == 'PITCHED')}"
    place = "WHOLE" if filtering == "Linear" and fetch.startswith("tex3D") else "PLACE"
    call = fetch.replace("(t", "(in.texture")
    for j, axis in enumerate("XYZ"):
        call = re.sub(rf"\b{axis}\b", f"{place}({j})/{size.split(',')[j] if normalized else 1}", call)
    if read != "ElementType" and filtering == "Linear":
        call = f"to_8_bits({call})"
    made = f"texture_of<{texel},{texel.rstrip('24')}>(cudaExtent{{{size}}},{memory},cudaFilterMode{filtering}"
    made += f",cudaAddressMode{mode},{normalized},cudaReadMode{read})"
    return f'"{name}", {fetch[fetch.index("<") + 1 : fetch.index(">")]}, ({loaded(call)}), (), ({made})'


def textures():
    for line in FETCHES.split("\n")[1:-1]:
        for filtering in "Point", "Linear":
            for mode, normalized in ADDRESSES:
                yield texture(*line.split(" "), "float", filtering, mode, normalized)
    for texel, number in FORMATS.items():
        yield texture(f"tex2D<{number}>(t,X,Y)", "8,4,0", "0", texel)
        for filtering in ["Point", "Linear"][: 1 if texel in ("ushort4", "short2") else 2]:  # see to_8_bits()
            fetch = f"tex2D<{re.sub('[a-z]+', 'float', number)}>(t,X,Y)"
            yield texture(fetch, "8,4,0", "0", texel, filtering, "Border", 0, "NormalizedFloat")
    for texel, filtering in (
        ("float2", "Point"),
        ("float2", "Linear"),
        ("float4", "Point"),
        ("float4", "Linear"),
        ("half", "Point"),
    ):
        yield texture(
            f"tex2D<{texel.replace('half', 'float')}>(t,X,Y)", "8,4,0", "0", texel, filtering, "Border"
        )
    for texel, result in (("float", "float"), ("int4", "int4"), ("uchar", "uint"), ("short2", "int2")):
        yield texture(f"tex1Dfetch<{result}>(t,(int)(U0%40))", "32,0,0", "LINEAR", texel)
    yield texture("tex2Dgather<float4>(t,X,Y)", "8,4,0", "cudaArrayTextureGather")


def half(**words):
    return re.sub(r"\$(HH|H|ww|w|a|p)", lambda m: words[m[1]], HALF)


SECTIONS = {
    "float": FLOAT, "double": DOUBLE, "integer": INTEGER, "casts": CASTS, "fp8": FP8, "warp": WARP, "atomic": ATOMIC, "sums": SUMS,
    "texture": "", "half": half(H="half", HH="half2", w="half", ww="half2", a="H", p="P"),
    "bfloat16": half(H="bfloat16", HH="bfloat162", w="bfloat16", ww="bfloat162", a="B", p="Q"),
}  # fmt: skip


def expanded(text):
    group = re.search(r"\{([^{}]*)\}", text)
    if not group:
        return [text]
    return [
        one
        for part in group[1].split(",")
        for one in expanded(text.replace(group[0], part.replace(";", ","), 1))
    ]


def named(expression):
    """An expression with the types in place of the arguments"""
    return ARGUMENT.sub(lambda m: ARGUMENTS[m[1]][0], expression)


def loaded(expression):
    """An expression with what a kernel reads in place of the arguments"""
    return ARGUMENT.sub(lambda m: ARGUMENTS[m[1]][1].format(m[2]), expression)


def function(number, macro, result, letters, item):
    """The line of the source for one function"""
    call, _, limit = item.partition("@")
    limit, _, exact = limit.partition("#")
    if not ARGUMENT.search(call) and letters:
        call += "(" + ",".join(f"{letter}{i}" for i, letter in enumerate(letters)) + ")"
    name = named(call)
    name = name if re.search(r"\w\(|->", name) else f"{result}={name}"
    arguments = list(dict.fromkeys(m[0] for m in ARGUMENT.finditer(call)))
    stored = "".join(f"a[{i}] = real({loaded(argument)});" for i, argument in enumerate(arguments))
    call, _, kept = call.partition("->")
    expression = f"({call}, {kept})" if kept else f"({call})"
    more = ""
    if limit:
        exact = exact or re.match("(?:__)?(.*?)[(]", call)[1]
        if result.startswith(("half", "bfloat16")):
            exact = re.sub("^h2?", "", exact)
        elif result == "float" and exact not in EXACT and exact != "erf":
            exact = exact.removesuffix("f")
        value = EXACT.get(exact, f"{exact}l({','.join('xyzt'[:len(letters) or 1])})")
        more = f', DOCUMENTED("{limit}", {value}, {LIMITS.get(limit, limit)})'
    if macro == "ATOMIC":
        expression = f"{letters[0]}0, ({call})"
    return f'{macro}({number}, "{name}", {result}, {loaded(expression)}, ({stored}){more})\n'


def source(section):
    macro = {"atomic": "ATOMIC", "sums": "SUM"}.get(section, "FUNCTION")
    text = (
        f"#define INPUTS {65536 if section in ('half', 'bfloat16') else 4096}\n"
        + '#include "conformance.h"\n'
    )
    number = 0
    if section == "texture":
        rows = (f"TEXTURE({i}, {row})\n" for i, row in enumerate(textures()))
        return text.replace("conformance", "textures") + "".join(rows)
    for line in SECTIONS[section].strip().split("\n"):
        types, items = line.split(": ", 1)
        result, *letters = types.split(" ")
        for item in [one for several in items.split(" ") for one in expanded(several)]:
            text += function(number, macro, result, letters, item)
            number += 1
    return text


def build(section, folder, *compiler):
    """Compiles a section into a program in this folder."""
    path = pathlib.Path(folder, f"{section}.cu")
    path.write_text(source(section))
    program = path.with_suffix("")
    subprocess.run([*compiler, f"-I{pathlib.Path(__file__).parent}", path, "-o", program], check=True)
    return program


def printed(section, program):
    """The lines of a program, after the name of its section"""
    lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return "".join(f"{section} {line}\n" for line in lines.splitlines())


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = list(pool.map(lambda section: build(section, sys.argv[1], *sys.argv[2:]), SECTIONS))
    for pair in zip(SECTIONS, programs):
        print(printed(*pair), end="")

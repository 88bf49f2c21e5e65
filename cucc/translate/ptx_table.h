// SPDX-License-Identifier: MIT
// The tables of ptx.c: for each special register and each instruction of PTX, the C++ text that replaces it
#pragma once

// The special registers, and the C++ expressions that have their values.
static const struct {
    const char *name, *value;
} ptx_registers[] = {
    {"laneid", "::cuda_cpu::lane()"},
    {"warpid", "(::cuda_cpu::thread_rank() / 32)"},
    {"nwarpid", "::cuda_cpu::ptx::warps()"},
    {"smid", "0u"},
    {"nsmid", "1u"},
    {"clock", "(unsigned)clock64()"},
    {"clock64", "clock64()"},
    {"globaltimer", "::cuda_cpu::ptx::globaltimer()"},
    {"globaltimer_lo", "(unsigned)::cuda_cpu::ptx::globaltimer()"},
    {"lanemask_eq", "::cuda_cpu::ptx::lanemask_eq()"},
    {"lanemask_lt", "::cuda_cpu::ptx::lanemask_lt()"},
    {"lanemask_le", "(::cuda_cpu::ptx::lanemask_lt() | ::cuda_cpu::ptx::lanemask_eq())"},
    {"lanemask_ge", "~::cuda_cpu::ptx::lanemask_lt()"},
    {"lanemask_gt", "~(::cuda_cpu::ptx::lanemask_lt() | ::cuda_cpu::ptx::lanemask_eq())"},
    {"tid.x", "threadIdx.x"},
    {"tid.y", "threadIdx.y"},
    {"tid.z", "threadIdx.z"},
    {"ntid.x", "blockDim.x"},
    {"ntid.y", "blockDim.y"},
    {"ntid.z", "blockDim.z"},
    {"ctaid.x", "blockIdx.x"},
    {"ctaid.y", "blockIdx.y"},
    {"ctaid.z", "blockIdx.z"},
    {"nctaid.x", "gridDim.x"},
    {"nctaid.y", "gridDim.y"},
    {"nctaid.z", "gridDim.z"},
    {"WARP_SZ", "32"},
};

// The PTX instructions that compute one result from source operands, or none.
//
//   name      without its type suffix, and without the modifiers that do not change the result here (key_of)
//   types     the type suffixes that are supported: u for .u8 to .u64, s for .s8 to .s64, b for .b8 to .b64,
//             f for .f32, d for .f64, p for .pred. Without any the name has no suffix
//   operands  a letter for each source operand, which says to which C++ type it is converted: t to the type
//             of the suffix, u to unsigned, w to the integer type of twice that width, p to bool (predicate);
//             a is an address, s one in shared memory, g one in global memory, o an unsigned that may be
//             missing, a digit a vector of so many registers. At the beginning - says that there is no
//             result, and = that it is such a vector
//   value     the C++ expression of the result, a template for fill(): $T is the C++ type of the suffix,
//             $1 to $4 are the source operands, $pred is the address of a second result; @ is a function of
//             cuda_cpu::ptx, whose result has the right type
static const struct {
    const char *name, *types, *operands, *value;
} ptx_instructions[] = {
    // clang-format off
    {"mov", "usbfdp", "t", "$1"}, {"cvta", "u", "t", "$1"}, {"cvta.to", "u", "t", "$1"},
    {"cvta.shared", "u", "t", "@from_shared($1)"}, {"cvta.to.shared", "u", "t", "@to_shared($1)"},
    {"add", "usfd", "tt", "@add<$T>($1, $2)"}, {"sub", "usfd", "tt", "@sub<$T>($1, $2)"},
    {"mul", "fd", "tt", "$1 * $2"}, {"div", "usfd", "tt", "$1 / $2"}, {"rem", "us", "tt", "$1 % $2"},
    {"mul.lo", "us", "tt", "@mul_lo<$T>($1, $2)"}, {"mul.hi", "us", "tt", "@mul_hi<$T>($1, $2)"},
    {"mul.wide", "us", "tt", "@mul_wide<$T>($1, $2)"},
    {"mul24.lo", "us", "tt", "@mul_lo<$T>(@bfe<$T>($1, 0, 24), @bfe<$T>($2, 0, 24))"},
    {"mad.lo", "us", "ttt", "@add<$T>(@mul_lo<$T>($1, $2), $3)"},
    {"mad.hi", "us", "ttt", "@add<$T>(@mul_hi<$T>($1, $2), $3)"},
    {"mad.wide", "us", "ttw", "@add(@mul_wide<$T>($1, $2), $3)"},
    {"sad", "us", "ttt", "@add<$T>($1 < $2 ? $2 - $1 : $1 - $2, $3)"},
    {"fma", "fd", "ttt", "::std::fma($1, $2, $3)"}, {"mad", "fd", "ttt", "::std::fma($1, $2, $3)"},
    {"min", "usfd", "tt", "@minimum<$T>($1, $2)"}, {"max", "usfd", "tt", "@maximum<$T>($1, $2)"},
    {"neg", "sfd", "t", "-$1"}, {"abs", "sfd", "t", "::std::abs($1)"}, {"and", "bp", "tt", "$1 & $2"},
    {"or", "bp", "tt", "$1 | $2"}, {"xor", "bp", "tt", "$1 ^ $2"}, {"not", "b", "t", "~$1"},
    {"not", "p", "t", "!$1"}, {"shl", "b", "tu", "@shift_left<$T>($1, $2)"},
    {"shr", "usb", "tu", "@shift_right<$T>($1, $2)"}, {"bfe", "us", "tuu", "@bfe<$T>($1, $2, $3)"},
    {"bfind", "us", "t", "@bfind<$T>($1)"}, {"bfind.shiftamt", "us", "t", "@bfind<$T>($1, true)"},
    {"bfi", "b", "ttuu", "@bfi<$T>($1, $2, $3, $4)"},
    {"clz", "b", "t", "$1 ? @bfind<$T>($1, true) : 8 * sizeof($T)"},
    {"brev", "b", "t", "sizeof($T) == 8 ? __brevll($1) : __brev((unsigned)$1)"},
    {"lop3", "b", "tttu", "@lop3($1, $2, $3, $4)"}, {"prmt", "b", "ttt", "@prmt($1, $2, $3)"},
    {"shf.l.wrap", "b", "ttu", "__funnelshift_l($1, $2, $3)"},
    {"shf.r.wrap", "b", "ttu", "__funnelshift_r($1, $2, $3)"},
    {"shf.l.clamp", "b", "ttu", "__funnelshift_lc($1, $2, $3)"},
    {"shf.r.clamp", "b", "ttu", "__funnelshift_rc($1, $2, $3)"}, {"vabsdiff4.u32.u32.u32.add", "", "uuu", "@bits<unsigned>(__vsadu4($1, $2) + $3)"},
    {"dp4a.s32", "s", "ttt", "__dp4a($1, $2, $3)"},
    {"dp4a.u32", "u", "ttt", "__dp4a($1, $2, $3)"}, {"popc", "b", "t", "__popcll($1)"},
    {"selp", "usbfd", "ttp", "$3 ? $1 : $2"},
    {"atom.add", "usfd", "at", "__nv_atomic_fetch_add(($T *)$1, $2)"},
    {"atom.min", "us", "at", "__nv_atomic_fetch_min(($T *)$1, $2)"},
    {"atom.max", "us", "at", "__nv_atomic_fetch_max(($T *)$1, $2)"},
    {"atom.and", "b", "at", "__nv_atomic_fetch_and(($T *)$1, $2)"},
    {"atom.or", "b", "at", "__nv_atomic_fetch_or(($T *)$1, $2)"},
    {"atom.xor", "b", "at", "__nv_atomic_fetch_xor(($T *)$1, $2)"},
    {"atom.exch", "b", "at", "__nv_atomic_exchange_n(($T *)$1, $2)"},
    {"atom.cas", "b", "att", "atomicCAS(($T *)$1, $2, $3)"},
    {"atom.inc", "u", "at", "atomicInc(($T *)$1, $2)"}, {"atom.dec", "u", "at", "atomicDec(($T *)$1, $2)"},
    {"shfl.sync.up", "b", "tuuu", "@shuffle<'u'>($1, $2, $3, $4, $pred)"},
    {"shfl.sync.down", "b", "tuuu", "@shuffle<'d'>($1, $2, $3, $4, $pred)"},
    {"shfl.sync.bfly", "b", "tuuu", "@shuffle<'b'>($1, $2, $3, $4, $pred)"},
    {"shfl.sync.idx", "b", "tuuu", "@shuffle<'i'>($1, $2, $3, $4, $pred)"},
    {"vote.sync.ballot", "b", "pu", "__ballot_sync($2, $1)"},
    {"vote.sync.any", "p", "pu", "__any_sync($2, $1)"}, {"vote.sync.all", "p", "pu", "__all_sync($2, $1)"},
    {"match.any.sync", "b", "tu", "__match_any_sync($2, $1)"},
    {"redux.sync.add", "us", "tu", "__reduce_add_sync($2, $1)"},
    {"redux.sync.min", "us", "tu", "__reduce_min_sync($2, $1)"},
    {"redux.sync.max", "us", "tu", "__reduce_max_sync($2, $1)"},
    {"activemask", "b", "", "__activemask(~$place)"}, {"bar.sync", "", "-uo", "@bar_sync($1, $2)"},
    {"bar.arrive", "", "-uu", "@bar_arrive($1, $2)"}, {"bar.warp.sync", "", "-u", "__syncwarp($1)"},
    {"cp.async", "", "-sguo", "@copy($1, $2, $3, $4)"},
    {"cp.async.commit_group", "", "-", "__pipeline_commit()"},
    {"cp.async.wait_group", "", "-u", "__pipeline_wait_prior($1)"},
    {"cp.async.wait_all", "", "-", "(__pipeline_commit(), __pipeline_wait_prior(0))"},
    {"nanosleep", "u", "-u", "__nanosleep($1)"}, {"trap", "", "-", "__trap()"}, {"rcp", "fd", "t", "1 / $1"},
    {"sqrt", "fd", "t", "::std::sqrt($1)"}, {"rsqrt", "f", "t", "1.0f / ::std::sqrt($1)"},
    {"ex2", "f", "t", "::std::exp2($1)"}, {"lg2", "f", "t", "::std::log2($1)"},
    {"sin", "f", "t", "::std::sin($1)"}, {"cos", "f", "t", "::std::cos($1)"},
    {"tanh", "f", "t", "::std::tanh($1)"},
    {"ldmatrix.sync.x1", "b", "=1s", "@load_matrix(1, false, $1)"},
    {"ldmatrix.sync.x1.trans", "b", "=1s", "@load_matrix(1, true, $1)"},
    {"ldmatrix.sync.x2", "b", "=2s", "@load_matrix(2, false, $1)"},
    {"ldmatrix.sync.x2.trans", "b", "=2s", "@load_matrix(2, true, $1)"},
    {"ldmatrix.sync.x4", "b", "=4s", "@load_matrix(4, false, $1)"},
    {"ldmatrix.sync.x4.trans", "b", "=4s", "@load_matrix(4, true, $1)"},
    {"mma.sync.m16n8k8.f32.f16.f16", "f", "=4214", "@mma<@Short<10>, float, 8>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k16.f32.f16.f16", "f", "=4424", "@mma<@Short<10>, float, 16>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k8.f16.f16.f16", "h", "=2212", "@mma<@Short<10>, @Short<10>, 8>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k16.f16.f16.f16", "h", "=2422", "@mma<@Short<10>, @Short<10>, 16>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k8.f32.bf16.bf16", "f", "=4214", "@mma<@Short<7>, float, 8>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k16.f32.bf16.bf16", "f", "=4424", "@mma<@Short<7>, float, 16>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k4.f32.tf32.tf32", "f", "=4214", "@mma<float, float, 4>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k8.f32.tf32.tf32", "f", "=4424", "@mma<float, float, 8>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k16.s32.s8.s8", "s", "=4214", "@mma<signed char, int, 16>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k32.s32.s8.s8", "s", "=4424", "@mma<signed char, int, 32>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k16.s32.u8.u8", "s", "=4214", "@mma<unsigned char, int, 16>($1, $2, $3, $sat)"},
    {"mma.sync.m16n8k32.s32.u8.u8", "s", "=4424", "@mma<unsigned char, int, 32>($1, $2, $3, $sat)"},
    {"cvt.rna.tf32", "f", "t", "@bits<float>((@bits<unsigned>($1) + 0x1000) & 0xffffe000)"},
    {"cvt.f16x2", "f", "tt", "@pack<10>($1, $2)"}, {"cvt.bf16x2", "f", "tt", "@pack<7>($1, $2)"},
    // clang-format on
};

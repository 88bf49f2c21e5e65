// SPDX-License-Identifier: MIT
// Memory: the registry of allocations, copies and fills, symbols, pools and managed memory
#include "memory/memory.cpp"
#include "memory/registry.cpp"
#include "memory/guard.cpp"
#include "memory/managed.cpp"
#include "memory/memory_pool.cpp"
#include "memory/symbol.cpp"
#include "memory/transfer.cpp"

// SPDX-License-Identifier: MIT
// Streams, the operations in them, and the graphs that are made of operations
#include "stream/stream.cpp"
#include "stream/operation.cpp"
#include "stream/capture.cpp"
#include "stream/graph.cpp"
#include "stream/graph_exec.cpp"
#include "stream/graph_memory.cpp"
#include "stream/graph_nodes.cpp"

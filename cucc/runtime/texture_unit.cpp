// SPDX-License-Identifier: MIT
// Arrays, and the textures and surfaces through which kernels access them
#include "texture/array.cpp"
#include "texture/texture.cpp"
#include "texture/texture_fetch.cpp"

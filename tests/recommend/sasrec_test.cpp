#include "recommend/sasrec.h"

#include <gtest/gtest.h>

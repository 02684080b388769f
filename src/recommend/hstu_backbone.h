#pragma once

#include "recommend/backbone.h"

namespace gainlens::recommend {

BackboneKind hstu_backbone();

}  // namespace gainlens::recommend

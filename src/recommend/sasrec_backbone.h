#pragma once

#include "recommend/backbone.h"

namespace gainlens::recommend {

/// SASRec as a row of backbones().
BackboneKind sasrec_backbone();

}  // namespace gainlens::recommend

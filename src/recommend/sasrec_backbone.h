#pragma once

#include "recommend/backbone.h"

namespace gainlens::recommend {

/// SASRec and BERT4Rec as rows of backbones().
BackboneKind sasrec_backbone();
BackboneKind bert4rec_backbone();

}  // namespace gainlens::recommend

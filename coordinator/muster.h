// Everything a user's program needs: #include "coordinator/muster.h". See README and examples/.
#pragma once

#include "common/base/status.h"
#include "common/metrics/binary_metrics.h"
#include "common/metrics/metric_set.h"
#include "common/metrics/regression_metrics.h"
#include "common/tensor/tensor.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/memory_data.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/frontend/specs.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/exit_code.h"
#include "coordinator/training/trainer.h"

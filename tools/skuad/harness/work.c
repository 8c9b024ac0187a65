// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/work.h"

#include "base/engine.h"

/* The linker puts it in the place of engine_step(), for all who call that. */
bool __wrap_engine_step(struct engine *engine);
bool __real_engine_step(struct engine *engine);

bool __wrap_engine_step(struct engine *engine)
{
	uint64_t before = work_done();
	bool any = __real_engine_step(engine);

	work_check(before);
	return any;
}

/** Problems of labels. */

import type { Problem } from '../../client/model.js';
import { shortened } from '../../sources.js';
import { effectOf, MAX_NAME, type ProblemSources } from './sources.js';

export function labelProblems({ labels }: ProblemSources): Problem[] {
  return labels
    .filter(({ waiting, reason }) => waiting > 0 && reason?.phase === 'none')
    .map(({ name, waiting, oldest, reason, pools }) => ({
      severity: 'critical',
      key: `label ${name}`,
      title: `No pool ${pools.length === 0 ? 'has' : 'can serve'} the label ${shortened(name, MAX_NAME)}`,
      subject: { kind: 'label', id: name },
      since: reason?.since ?? oldest,
      cause: 'configuration',
      details: pools.length === 0 || reason === null ? [] : [reason.text],
      effect: effectOf(waiting),
      remedy: 'Add the label to a pool, or correct the jobs that ask for it.',
    }));
}

/** `nodepool explain job https://github.com/acme/app/actions/runs/1001`: the step that a job waits in. */

import { expect, it } from '@jest/globals';
import {
  explainJobs,
  explainUnknown,
  RunnerPlaces,
  runPageOf,
  scaleSetRecordIn,
  type KnownJob,
  type RunnerData,
  type ScaleSetRecord,
} from '@nodepool/store/github';

const PAGE = { repository: 'acme/app', run: 1001 };
const JOB: KnownJob = {
  ...{ id: 'j1', repository: 'acme/app', workflow: 'ci.yml', run: 1001, name: 'build', state: 'assigned', since: 100 },
  ...{ queued: 90, runner: 'linux-1', result: null },
};
const RECORD: ScaleSetRecord = {
  ...{ installation: 'acme', scaleSet: 'linux', url: 'https://github.com/acme', nodeLabel: 'debian', bridge: 'b-1' },
  ...{ id: 1, session: 's', capacity: 3, capacityReason: 'provider cloud has 3 free instances', jobsAvailable: 1 },
  ...{ jobsAssigned: 2, jobsRunning: 1, runners: {}, problem: null, written: 0, jobs: [JOB], phases: [] },
};
const DATA: RunnerData = {
  ...{ installation: 'acme', scaleSet: 'linux', runner: 'linux-1', job: null, agent: null, started: false },
};

function says(job: Partial<KnownJob>, more: Partial<ScaleSetRecord> = {}, node?: RunnerData, request?: RunnerData) {
  const records = [{ ...RECORD, jobs: [{ ...JOB, ...job }], ...more }];
  const nodes = node === undefined ? [] : [{ id: '0000000007', state: 'in-use' as const, data: node }];
  const requests = request === undefined ? [] : [{ id: '200-0000000042', state: 'requested' as const, data: request }];
  return explainJobs(PAGE, records, new RunnerPlaces(requests, nodes), 130_000)[0]?.says.join(' ');
}

it.each([
  ['https://github.com/acme/app/actions/runs/1001', PAGE],
  ['https://github.com/acme/app/actions/runs/1001/job/2', PAGE],
  ['https://git.example.org/acme/app/actions/runs/1001?pr=5', PAGE],
  ['https://github.com/acme/app', undefined],
])('%s', (url, page) => expect(runPageOf(url)).toEqual(page));

it('names the request that a job waits for', () => {
  const text = says({}, {}, undefined, DATA) ?? '';
  expect(text).toContain('It is assigned for 30 s.');
  expect(text).toContain('It waits for request 200-0000000042, which is requested.');
});

it('names the node whose runner starts, and the one on which the job runs', () => {
  expect(says({}, {}, { ...DATA, started: true })).toContain('Node 0000000007 is ready, and its runner starts');
  expect(says({ state: 'running' }, {}, DATA)).toContain('Runner linux-1 runs it on node 0000000007.');
});

it('names the trouble of the connection, and the result of an ended job', () => {
  expect(says({}, { problem: 'status 401' })).toContain('Bridge b-1 has a problem: status 401.');
  expect(says({ state: 'completed', result: 'failed' })).toContain('Its result is failed.');
});

it('names the capacity of each scale set if none has got the run', () => {
  expect(explainJobs({ ...PAGE, run: 5 }, [RECORD], new RunnerPlaces([], []), 0)).toEqual([]);
  expect(explainUnknown([RECORD])[0]).toContain('it may get 3 jobs at once (provider cloud has 3 free instances)');
  expect(explainUnknown([])).toEqual(['No bridge has served a scale set yet: nodepool-github does not run.']);
});

it('a record is read without trust, and its unknown members are ignored', () => {
  const read = (value: unknown): ScaleSetRecord | undefined => scaleSetRecordIn(Buffer.from(JSON.stringify(value)));
  const phase = { repository: 'acme/app', phase: 'node', count: 1, p50: 1, p95: 2 };
  expect(read({ ...RECORD, phases: [phase], more: 1 })).toEqual({ ...RECORD, phases: [phase] });
  const nonsense = { jobs: [7, {}], phases: [{ phase: 'lunch' }], runners: { busy: 'x' }, url: 5, capacity: null };
  const { installation, scaleSet } = RECORD;
  expect(read({ installation, scaleSet, ...nonsense })).toMatchObject({ jobs: [], phases: [], runners: {}, url: '' });
  expect(read({ installation })).toBeUndefined();
  expect(scaleSetRecordIn(Buffer.from('{'))).toBeUndefined();
});

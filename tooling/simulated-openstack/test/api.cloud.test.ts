/** What the driver relies on: of the simulated OpenStack, and with `pnpm test:openstack` of the real one. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { apiCases, Bench, openStackUnderTest, type OpenStackUnderTest } from '../src/index.js';

/** The real services take their time. */
const CASE_TIMEOUT_MS = 180_000;

let cloud: OpenStackUnderTest;
let bench: Bench;

beforeAll(async () => {
  cloud = await openStackUnderTest();
  bench = await Bench.open(cloud.cloudsYaml);
}, CASE_TIMEOUT_MS);

afterEach(async () => {
  await bench.tidy();
  if (cloud.simulated !== undefined) {
    expect(cloud.simulated.inspect.leftovers()).toEqual({
      servers: 0,
      ports: 0,
      floatingIps: 0,
      volumes: 0,
      images: 0,
    });
  }
}, CASE_TIMEOUT_MS);

afterAll(async () => {
  await cloud.close();
});

describe.each([...new Set(apiCases.map(({ service }) => service))])('the %s service', (service) => {
  for (const { name, run } of apiCases.filter((candidate) => candidate.service === service)) {
    it(
      name,
      async () => {
        await expect(run(bench)).resolves.toBeUndefined();
      },
      CASE_TIMEOUT_MS,
    );
  }
});

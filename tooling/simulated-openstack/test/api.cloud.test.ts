/**
 * The API behaviours that the driver relies on, on the simulated OpenStack and, with `pnpm test:openstack`, on a real
 * one.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { apiCases, TestBed, openStackUnderTest, type OpenStackUnderTest } from '../src/index.js';

let cloud: OpenStackUnderTest;
let bed: TestBed;

beforeAll(async () => {
  cloud = await openStackUnderTest();
  bed = await TestBed.open(cloud.cloudsYaml);
});

afterEach(async () => {
  await bed.tidy();
  if (cloud.simulated !== undefined) {
    expect(cloud.simulated.inspect.leftovers()).toEqual({
      servers: 0,
      ports: 0,
      floatingIps: 0,
      volumes: 0,
      images: 0,
    });
  }
});

afterAll(async () => {
  await cloud.close();
});

describe.each([...new Set(apiCases.map(({ service }) => service))])('the %s service', (service) => {
  for (const { name, run } of apiCases.filter((candidate) => candidate.service === service)) {
    it(name, async () => {
      await expect(run(bed)).resolves.toBeUndefined();
    });
  }
});

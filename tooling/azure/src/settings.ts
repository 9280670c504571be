/** What a simulated Azure is like, and what is in it at first. */

export interface CloudSettings {
  /** From an accepted creation of a VM to its end, milliseconds. */
  readonly bootMs: number;
  /** From an accepted deletion to its end, milliseconds. */
  readonly deleteMs: number;
  /** Of other operations, milliseconds. */
  readonly workMs: number;
  /** Of every answer, milliseconds. */
  readonly latencyMs: number;
  /** Entries of a page. */
  readonly pageLimit: number;
  /** What answers say in `Retry-After`, seconds. */
  readonly retryAfterSeconds: number;
  /** How long a token is good, seconds. */
  readonly tokenSeconds: number;
  /** Calls per minute, after which there are answers 429. */
  readonly callsPerMinute: number;
}

export const DEFAULT_SETTINGS: CloudSettings = {
  bootMs: 20_000,
  deleteMs: 10_000,
  workMs: 2000,
  latencyMs: 0,
  pageLimit: 50,
  retryAfterSeconds: 5,
  tokenSeconds: 3600,
  callsPerMinute: Infinity,
};

/** Whose account it is. */
export const ACCOUNT = {
  subscriptionId: 'c35cf7df-ed75-4c85-be00-535409a85120',
  tenantId: '2f3d0b52-5c4e-4b61-9e1c-0d8d5f3c6a11',
  clientId: 'a5f1f3a2-7f5b-4f0e-a0fb-6c8b7c0f7e22',
  clientSecret: 'the secret of the simulation',
} as const;

export const SAMPLE = {
  location: 'centralus',
  resourceGroup: 'nodepool',
  network: 'NodePool',
  subnet: 'default',
} as const;

/** A size of VMs. */
export interface SampleSize {
  readonly name: string;
  readonly family: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly restricted?: boolean;
}

export const SAMPLE_SIZES: readonly SampleSize[] = [
  { name: 'Standard_B1ls', family: 'standardBSFamily', cores: 1, memoryGb: 0.5 },
  { name: 'Standard_B2s', family: 'standardBSFamily', cores: 2, memoryGb: 4 },
  { name: 'Standard_D4s_v5', family: 'standardDSv5Family', cores: 4, memoryGb: 16 },
  { name: 'Standard_M128s', family: 'standardMSFamily', cores: 128, memoryGb: 2048, restricted: true },
];

/** Limits by name of the usage. */
export const SAMPLE_LIMITS: Readonly<Record<string, number>> = {
  virtualMachines: 25_000,
  cores: 10_000,
  standardBSFamily: 10_000,
  standardDSv5Family: 100,
};

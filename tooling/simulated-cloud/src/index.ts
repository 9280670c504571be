/** Parts of a simulated cloud: its server, faults, call log, settings, validation and program. */
export { CallLog, type CloudCall } from './calls.js';
export { CloudState, type SimulatedCloudOptions } from './cloud-state.js';
export {
  FaultPlan,
  type ActiveFault,
  type CallFault,
  type FaultRule,
  type StatusFault,
  type VendorFault,
} from './faults.js';
export { InProcessServer } from './in-process.js';
export { integerIn, runProgram, type CloudProgram } from './program.js';
export { ApiError, jsonObjectIn, routePath, type Answer, type RequestContext, type Route } from './request-context.js';
export { CloudServer, type CloudConnections, type CloudServerOptions, type VendorForm } from './server.js';
export { Validator } from './validation.js';
export { httpControls } from './http-controls.js';

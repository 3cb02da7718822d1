/**
 * Imported before the runtime, which decides as it is loaded whether it reports its use to its makers: a demo and
 * a test run have nothing to report.
 */
process.env['COPILOTKIT_TELEMETRY_DISABLED'] = 'true'

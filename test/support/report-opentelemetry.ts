import { registerHooks } from 'node:module';

// Loaded into a process by NODE_OPTIONS: it then prints this line for each module of OpenTelemetry that it loads.
registerHooks({
  load(url, context, next) {
    if (url.includes('/@opentelemetry/')) process.stderr.write('OpenTelemetry is loaded\n');
    return next(url, context);
  },
});

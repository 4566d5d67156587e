// A process under the launcher: asks for two settings, and reports what it was handed and what its environment has.
process.on('message', (handed) => {
  const ready = JSON.stringify({ handed, environment: Object.keys(process.env) });
  process.send!({ ready, stopsWithinMs: 0 });
});
process.send!({ asksFor: ['WANTED', 'NOT_SET'] });

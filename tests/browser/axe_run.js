// The rules that the page breaks, with what breaks them.
const done = arguments[arguments.length - 1];
axe.run(document, {preload: false, runOnly: arguments[0]}).then(r => done(
  r.violations.map(v => v.id + ": " + v.nodes.map(n => n.target).slice(0, 3))));

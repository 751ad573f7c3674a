const assert = require("node:assert");
const t = (name, f) => { try { const v = f(); console.log(name, "passed", v); } catch (e) { console.log("==", name, e.name, e.code, e.generatedMessage, e.operator, "|", e.message); } };
t("ok", () => assert.ok(0, undefined) );
t("ok message", () => assert.ok(false, "no"));
t("call", () => assert(null, "nothing"));
t("no argument", () => assert.ok());
t("fail", () => assert.fail());
t("fail text", () => assert.fail("boom"));
t("fail error", () => assert.fail(new RangeError("r")));
t("ifError null", () => assert.ifError(null));
t("ifError", () => assert.ifError(new Error("inner")));
t("ifError text", () => assert.ifError("text"));
t("ifError number", () => assert.ifError(0));
t("throws nothing", () => assert.throws(() => {}));
t("throws nothing text", () => assert.throws(() => {}, "why"));
t("throws nothing kind", () => assert.throws(() => {}, TypeError));
t("throws kind and text", () => assert.throws(() => {}, TypeError, "why"));
t("throws other", () => assert.throws(() => { throw new RangeError("x"); }, TypeError));
t("throws pattern", () => assert.throws(() => { throw new Error("abc"); }, /xyz/));
t("throws shape", () => assert.throws(() => { throw new Error("abc"); }, { message: "xyz" }));
t("throws shape ok", () => assert.throws(() => { throw Object.assign(new Error("abc"), { code: "E" }); }, { message: /b/, code: "E", name: "Error" }));
t("throws validator", () => assert.throws(() => { throw new Error("abc"); }, (e) => e.message === "no"));
t("throws same text", () => assert.throws(() => { throw new Error("same"); }, "same"));
t("doesNotThrow", () => assert.doesNotThrow(() => { throw new Error("bad"); }));
t("doesNotThrow text", () => assert.doesNotThrow(() => { throw new Error("bad"); }, "whoops"));
t("match", () => assert.match("abc", /x/));
t("match kind", () => assert.match(5, /x/));
t("doesNotMatch", () => assert.doesNotMatch("abc", /b/));
t("fn", () => assert.throws("x"));
t("strict", () => assert.strict.equal(1, "1"));
t("AssertionError", () => { throw new assert.AssertionError({ actual: 1, expected: 2, operator: "strictEqual" }); });
t("AssertionError message", () => { const e = new assert.AssertionError({ message: "m" }); console.log(Object.keys(e), e instanceof Error, String(e)); throw e; });
console.log(Object.keys(assert).sort().join(" "));
(async () => {
  for (const [name, f] of [
    ["rejects", () => assert.rejects(Promise.resolve(1))], ["rejects kind", () => assert.rejects(async () => { throw new TypeError("t"); }, RangeError)], ["rejects ok", () => assert.rejects(async () => { throw new TypeError("t"); }, { name: "TypeError" })],
    ["rejects no promise", () => assert.rejects(() => 5)], ["doesNotReject", () => assert.doesNotReject(Promise.reject(new Error("x")))],
  ]) { try { await f(); console.log(name, "passed"); } catch (e) { console.log("==", name, e.name, e.code, e.operator, "|", e.message); } }
})();

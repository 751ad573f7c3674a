package wasm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// What a hostile script ends by.
const (
	byTime   = "time"
	byCode   = "code" // an error that it is told of, or none: the program itself ends it
	byAny    = "any"  // one of the bounds, or an error
	byOutput = "output_bytes"
)

// hostile is a script that takes what it can.
type hostile struct {
	name, script string
	end          string
}

// hostiles are scripts of a shell in a space with the bounds of the conformance suite: 96 MiB of memory, 24 of disk, 16 of a file, 1 of output.
var hostiles = []hostile{
	// The shell.
	{"loop", `while :; do :; done`, byTime},
	{"loop that ignores its end", `trap '' TERM INT HUP EXIT; trap 'while :; do :; done' TERM EXIT; while :; do :; done`, byTime},
	{"timeout that is ignored", `trap '' TERM; timeout -s TERM 0.1 sh -c 'trap "" TERM; while :; do :; done'; while :; do :; done`, byTime},
	{"recursive function", `f() { f; }; f`, byAny},
	{"recursive function in a substitution", `f() { x=$(f); }; f`, byAny},
	{"fork bomb", `:(){ :|:& };:; wait`, byAny},
	{"fork bomb without a pipe", `f() { f & f & }; f; wait`, byAny},
	{"script that starts itself", `echo 'sh ./s & sh ./s' >s; sh ./s; wait`, byAny},
	{"eval of itself", `x='eval "$x"'; eval "$x"`, byAny},
	{"alias of itself", `shopt -s expand_aliases; alias a='a b'; a`, byCode},
	{"source of itself", `echo '. ./s' >s; . ./s`, byAny},
	{"brace expansion", `echo {1..1000000000}`, byAny},
	{"braces in braces", `echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} | wc -c`, byAny},
	{"doubling text", `x=xxxxxxxx; while :; do x=$x$x; done`, byAny},
	{"growing array", `i=0; while :; do a[i++]=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`, byAny},
	{"sparse array", `a[4611686018427387904]=1; a[9223372036854775807]=1; echo ${!a[@]}`, byCode},
	{"wide printf", `printf %1000000000d 1 | wc -c`, byAny},
	{"precise printf", `printf %.1000000000f 1 | wc -c`, byAny},
	{"printf without an end", `while :; do printf %1000d 1; done`, byOutput},
	{"small writes", `while :; do echo x; done`, byAny},
	{"seq", `seq 1 100000000000`, byOutput},
	{"seq into nothing", `seq 1 100000000000 >/dev/null`, byTime},
	{"yes", `yes`, byOutput},
	{"yes into nothing", `yes >/dev/null`, byTime},
	{"yes into sort", `yes | sort`, byAny},
	{"yes without lines", `yes | tr -d '\n' | sort`, byAny},
	{"yes into tac", `yes | tac`, byAny},
	{"yes into a variable", `x=$(yes)`, byAny},
	{"yes into read", `yes | tr -d '\n' | while read x; do :; done`, byAny},
	{"yes into uniq", `yes | uniq -c`, byTime},
	{"yes into a file", `yes >f`, byAny},
	{"zeros", `cat /dev/zero`, byOutput},
	{"zeros into a file", `cat /dev/zero >f`, byAny},
	{"zeros into a pipe", `cat /dev/zero | cat | cat | cat >/dev/null`, byTime},
	{"dd of one block", `dd if=/dev/zero of=f bs=1000000000000 count=1`, byAny},
	{"tail of everything", `yes | tail -n 1000000000`, byAny},
	{"tail of the file that grows", `echo x >f; tail -f f >>f`, byAny},
	{"cat of itself", `echo x >f; cat f f >>f`, byCode},
	{"sleeps", `while :; do sleep 0; done`, byTime},
	{"a long sleep", `sleep 100000000`, byTime},
	{"a sleep of infinity", `sleep infinity`, byTime},
	{"many jobs", `i=0; while [ $i -lt 100000 ]; do sleep 1000000 & i=$((i+1)); done; wait`, byAny},
	{"a reader of its own pipe", `mkfifo p; cat p >p`, byAny},
	{"wait for nobody", `mkfifo p; cat <p`, byAny},
	{"nested substitutions", `eval "$(printf 'echo %s' "$(yes '$(' | head -n 20000 | tr -d '\n')")"`, byAny},
	{"nested subshells", `eval "$(yes '(' | head -n 100000 | tr -d '\n')"`, byAny},
	{"nested braces of arithmetic", `eval "echo \$(($(yes '(' | head -n 200000 | tr -d '\n')1$(yes ')' | head -n 200000 | tr -d '\n')))"`, byAny},
	{"nested signs of arithmetic", `eval "echo \$(($(yes '- ' | head -n 200000 | tr -d '\n')1))"`, byAny},
	{"nested ifs", `eval "$(yes 'if true; then' | head -n 100000)"`, byAny},
	{"nested parameters", `eval "echo $(yes '${x:-' | head -n 50000 | tr -d '\n')"`, byAny},
	{"arithmetic that never ends", `x=x; echo $((x))`, byAny},
	{"arithmetic that doubles", `a=b+b b=c+c c=d+d d=e+e e=f+f f=g+g g=h+h h=i+i i=j+j j=k+k k=l+l l=m+m m=n+n n=o+o o=p+p p=q+q q=r+r r=s+s s=t+t t=u+u u=v+v v=w+w w=x+x x=y+y y=z+z z=1; echo $((a*a*a))`, byAny},
	{"power", `echo $((2**9223372036854775807)) $((9223372036854775807%-1)) $((-9223372036854775808/-1))`, byAny},
	{"deep test", `[ $(yes '(' | head -n 100000) ]`, byAny},
	{"deep nots of test", `test $(yes '!' | head -n 200000)`, byAny},
	{"pattern that goes back", `x=$(yes a | head -n 5000 | tr -d '\n'); case $x in *a*a*a*a*a*a*a*a*a*b) ;; esac; echo ${x//*a*a*a*a*b/}`, byAny},
	{"extended pattern that goes back", `shopt -s extglob; x=$(yes a | head -n 500 | tr -d '\n'); case $x in +(+(+(a)))b) ;; esac`, byAny},
	{"replacing in a long text", `x=$(yes a | head -n 200000 | tr -d '\n'); while :; do y=${x//a/bb}; done`, byAny},
	// Files.
	{"many files", `i=0; while :; do : >f$((i++)); done`, byAny},
	{"many folders", `i=0; while :; do mkdir d$((i++)); done`, byAny},
	{"deep folders", `while mkdir d && cd d; do :; done`, byAny},
	{"many links", `i=0; while :; do ln -s x l$((i++)); done`, byAny},
	{"many hard links", `: >f; i=0; while :; do ln f l$((i++)); done`, byAny},
	{"links in circles", `ln -s a b; ln -s b a; cat a; cd a; ls -L a; find -L . ; mkdir d; ln -s ../d d/d; ls -R d; find -L d; cp -rL d e; du -L d; rm -rf d`, byCode},
	{"links that grow", `ln -s x/x x; cat x; i=0; p=.; while [ $i -lt 45 ]; do ln -s $p l$i; p=l$i/.; i=$((i+1)); done; cat l44/f`, byCode},
	{"folder into itself", `mkdir d; cp -r d d/d; cp -r . d; mv d d/e; cp -r d d/d/d`, byCode},
	{"holes", `truncate -s 100000000000 f; dd if=/dev/null of=g bs=1 seek=100000000000; echo x | dd of=h bs=1 seek=268435455`, byAny},
	{"a long name", `n=$(printf %0300d 1); : >$n; mkdir $n; ln -s $n x; p=$(printf %05000d 1); cat $p; ln -s $p y; cd $p`, byCode},
	{"tree in a glob", `mkdir -p a/a/a/a/a/a/a b; echo */*/*/*/*/*/*/*/../../../../../../../*/*/*/*/*/*/*; echo /*/*/*/*/*/*; echo {a,b}/../{a,b}/../{a,b}/../{a,b}/../{a,b}/../{a,b}/../{a,b}/../{a,b}/../{a,b}/../{a,b} | wc -c`, byAny},
	{"paths out", `cat ../../../../etc/shadow /proc/self/environ /proc/1/root/etc/passwd /dev/mem /dev/sda /sys/kernel; ls /root /home /var/lib; echo x >/etc/passwd; echo x >/usr/bin/ls; rm -rf /usr /etc; echo x >/dev/tcp/127.0.0.1/80; mknod d b 8 0; mount x y; chroot /`, byCode},
	{"the whole tree removed", `rm -rf --no-preserve-root / /workspace /tmp /usr /dev; rm -rf /workspace; cd /; rmdir workspace tmp; mv /workspace /x; mv /tmp /workspace`, byCode},
	// Commands.
	{"grep that goes back", `yes a | head -n 3000 | tr -d '\n' >f; grep -E '(a*)*(a*)*(a*)*b' f; grep -E '\(a*\)*\1b' f; grep '\(a*\)*\(a*\)*\1\2b' f; grep -P '(a+)+(a+)+(a+)+$b' f`, byAny},
	{"grep of back references", `yes a | head -n 2000 | tr -d '\n' >f; grep '\(a*\)\(a*\)\(a*\)\(a*\)\1\2\3\4b' f`, byAny},
	{"grep with a large count", `echo a | grep -E '((a{1,1000}){1,1000}){1,1000}'; echo a | grep -E 'a{1000000000}'`, byAny},
	{"grep with deep groups", `echo a | grep -E "$(yes '(' | head -n 100000 | tr -d '\n')a$(yes ')' | head -n 100000 | tr -d '\n')"`, byAny},
	{"grep with many alternatives", `seq 1 200000 >f; yes abcdefghij | head -n 100000 | grep -f f`, byAny},
	{"sed that loops", `echo a | sed ':a; ba'`, byTime},
	{"sed that grows", `echo a | sed ':a; s/.*/&&/; ta'`, byAny},
	{"sed that goes back", `yes a | head -n 2000 | tr -d '\n' | sed 's/\(a*\)*\(a*\)*\1b//'`, byAny},
	{"sed that hoards", `yes | sed ':a; N; ba'`, byAny},
	{"awk that loops", `awk 'BEGIN { while (1) ; }'`, byTime},
	{"awk that recurs", `awk 'function f(x) { return f(x+1) } BEGIN { f(1) }'`, byAny},
	{"awk that grows", `awk 'BEGIN { x = "x"; while (1) x = x x }'`, byAny},
	{"awk that hoards", `awk 'BEGIN { while (1) a[i++] = i "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }'`, byAny},
	{"awk with wide numbers", `awk 'BEGIN { printf "%1000000000d", 1; x = sprintf("%*d", 1000000000, 1) }' | wc -c`, byAny},
	{"awk with a far field", `echo a | awk '{ $1000000000 = 1; NF = 1000000000; print }' | wc -c`, byAny},
	{"awk with a deep expression", `awk "BEGIN { x = $(yes '(' | head -n 100000 | tr -d '\n')1$(yes ')' | head -n 100000 | tr -d '\n') }"`, byAny},
	{"awk with deep signs", `awk "BEGIN { x = $(yes '- ' | head -n 200000 | tr -d '\n')1 }"`, byAny},
	{"awk with deep blocks", `awk "BEGIN $(yes '{' | head -n 100000 | tr -d '\n') x $(yes '}' | head -n 100000 | tr -d '\n')"`, byAny},
	{"awk that starts itself", `echo 'BEGIN { system("awk -f s") }' >s; awk -f s`, byAny},
	{"jq that loops", `jq -n 'repeat(1)' >/dev/null`, byTime},
	{"jq that loops in silence", `jq -n 'last(repeat(1))'`, byTime},
	{"jq that recurs", `jq -n 'def f: 1 + f; f'`, byAny},
	{"jq that grows", `jq -n '[range(1e12)]'`, byAny},
	{"jq that doubles", `jq -n '"x" | until(false; . + .)'`, byAny},
	{"jq that multiplies", `jq -n '"xxxxxxxxxx" * 1000000000 | length'`, byAny},
	{"jq with a far index", `jq -n '[] | .[1000000000] = 1 | length'; jq -n 'null | setpath([536870000]; 1) | length'`, byAny},
	{"jq with a deep value", `yes '[' | head -n 1000000 | tr -d '\n' | jq .`, byAny},
	{"jq that builds a deep value", `jq -n 'reduce range(3000000) as $i (0; [.]) | tojson | length'`, byAny},
	{"jq with a deep program", `jq -n "$(yes '[' | head -n 100000 | tr -d '\n')1$(yes ']' | head -n 100000 | tr -d '\n')"`, byAny},
	{"jq that goes back", `jq -n '("a" * 100000) | test("(a*)*(a*)*(a*)*b")'`, byAny},
	{"jq with a large number", `jq -n '1e1000000000, pow(10;308)*10'; echo 1e999999999 | jq .; yes 1 | head -n 3000000 | tr -d '\n' | jq .`, byAny},
	{"jq with combinations", `jq -n '[[range(100)] | combinations(100)] | length'`, byAny},
	{"bc that loops", `echo 'while (1) {}' | bc`, byTime},
	{"bc with a large power", `echo '9^9^9^9' | bc`, byAny},
	{"bc with many digits", `echo 'scale=100000000; 1/3' | bc`, byAny},
	{"bc that squares", `echo 'x=9; while (1) x=x*x' | bc`, byAny},
	{"bc that recurs", `echo 'define f(x) { return f(x+1); } f(1)' | bc`, byAny},
	{"bc with a far element", `echo 'a[16777215]=1; a[16777216]=1; a[2147483647]=1' | bc`, byAny},
	{"bc with a deep expression", `echo "$(yes '(' | head -n 100000 | tr -d '\n')1$(yes ')' | head -n 100000 | tr -d '\n')" | bc`, byAny},
	{"bc with deep signs", `echo "$(yes '-' | head -n 300000 | tr -d '\n')1" | bc`, byAny},
	{"bc with deep blocks", `echo "$(yes '{' | head -n 100000 | tr -d '\n')1" | bc`, byAny},
	{"expr with deep parentheses", `expr $(yes '(' | head -n 100000) 1 $(yes ')' | head -n 100000)`, byAny},
	{"expr that goes back", `expr $(yes a | head -n 3000 | tr -d '\n') : '\(a*\)*\(a*\)*\(a*\)*\1b'`, byAny},
	{"find with deep parentheses", `find . $(yes '(' | head -n 100000) -name x $(yes ')' | head -n 100000)`, byAny},
	{"find with deep nots", `find . $(yes '!' | head -n 200000) -name x`, byAny},
	{"find that starts itself", `find . -exec find . -exec find . -exec find . ';' ';' ';' ';'; find / -exec sh -c 'find / -exec true ";"' ';'`, byAny},
	{"xargs of everything", `yes | xargs -n 1 echo >/dev/null`, byTime},
	{"xargs that starts itself", `echo 'echo x | xargs ./s' >s; chmod +x s; ./s`, byAny},
	{"factor", `factor 340282366920938463463374607431768211297 18446744073709551557 $(yes 9 | head -n 5000 | tr -d '\n')`, byAny},
	{"diff of everything", `seq 1 100000 >a; seq 1 100000 | sort -R >b; diff a b | wc -l; seq 100000 -1 1 >c; diff a c | wc -l`, byAny},
	{"sort of numbers without an end", `seq 1 100000000 | sort -n`, byAny},
	{"shuf", `shuf -i 1-100000000000; shuf -r -i 1-2`, byAny},
	{"split into many", `seq 1 1000000 | split -l 1 -a 6`, byAny},
	{"paste, pr, column, fold of one line", `cat /dev/zero | head -c 50000000 | tr '\0' a | fold -w 1 | wc -l; head -c 50000000 /dev/zero | column | wc -c`, byAny},
	{"tr with large sets", `echo x | tr 'a-z' '[x*1000000000000]' ; echo x | tr '\0-\377' '[a*0]'`, byCode},
	{"od, xxd, base64, md5sum without an end", `od /dev/zero | md5sum; xxd /dev/urandom | sha512sum`, byTime},
	{"date far away", `date -d '@99999999999999999' ; date -d '1000000000 years'; date -d 'now + 9999999999999 days'; date +%1000000000s`, byAny},
	{"numfmt, printf, seq of strange numbers", `seq 1 1e-300 2 | head -n 1; seq inf; seq 1 0 2; printf '%*d' 999999999999 1`, byAny},
	{"env of a large size", `export x=$(yes a | head -n 3000000 | tr -d '\n'); while :; do sh -c 'env | wc -c'; done`, byAny},
	{"archive of itself", `yes | head -c 1000000 >a; tar cf t.tar .; tar cf - . | tar cf - . | wc -c; tar cf d.tar / | wc -c; zip -r z.zip . >/dev/null`, byAny},
	{"gzip of gzip", `head -c 300000000 /dev/zero | gzip | gzip >g; while :; do gzip -dc g | gzip -dc | wc -c; done`, byAny},
	{"patch with far lines", "echo a >f; printf -- '--- f\\n+++ f\\n@@ -1000000000,1000000000 +1,1 @@\\n-a\\n+b\\n' | patch; printf -- '--- ../../etc/passwd\\n+++ ../../../etc/passwd\\n@@ -0,0 +1 @@\\n+b\\n' | patch -p0", byCode},
}

// pythons and scripts are programs, each of one of the interpreters.
var pythons = []hostile{
	{"python loop", `while True: pass`, byTime},
	{"python that catches everything", "while True:\n try:\n  while True: pass\n except BaseException: pass", byTime},
	{"python that catches memory errors", "l=[]\nwhile True:\n try:\n  while True: l.append(bytearray(1<<20))\n except BaseException: l.clear()", byAny},
	{"python that catches recursion errors", "def f():\n try: f()\n except BaseException: f()\n finally: f()\nf()", byAny},
	{"python with signal handlers", "import signal\nfor s in range(1,65):\n try: signal.signal(s, lambda *a: None)\n except Exception: pass\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1,65)) if hasattr(signal,'pthread_sigmask') else None\nwhile True: pass", byTime},
	{"python with atexit", "import atexit\n@atexit.register\ndef f():\n while True: pass", byTime},
	{"python with a finalizer", "class A:\n def __del__(self):\n  while True: pass\na=A(); del a", byTime},
	{"python with a deep expression", `eval("("*100000 + "1" + ")"*100000)`, byAny},
	{"python with deep signs", `eval("-"*1000000 + "1")`, byAny},
	{"python with a deep tree", `import ast; x="1"; exec("x="+"+".join(["1"]*300000)); ast.literal_eval("["*50000)`, byAny},
	{"python with a large power", `print(len(str(9**9**9)))`, byAny},
	{"python with a large product", `x=b"x"*(1<<40)`, byAny},
	{"python that goes back", `import re; re.match(r"(a*)*(a*)*(a*)*b", "a"*100000); re.match(r"(a|a)*b", "a"*100)`, byAny},
	{"python with deep json", `import json; json.loads("["*1000000)`, byAny},
	{"python with deep pickle", "import pickle\nx=[]\nfor i in range(1000000): x=[x]\npickle.dumps(x); repr(x)", byAny},
	{"python with a deep list freed", "x=[]\nfor i in range(2000000): x=[x]\ndel x\nprint(1)", byCode},
	{"python with iterators in iterators", "import itertools\ni=iter([])\nfor _ in range(1000000): i=itertools.chain(i,[1])\nnext(i)", byAny},
	{"python with threads", "import threading\ndef f():\n while True: pass\nfor i in range(1000):\n try: threading.Thread(target=f).start()\n except Exception: break\nf()", byAny},
	{"python with many files", "i=0\nl=[]\nwhile True:\n l.append(open(f'f{i}','w')); i+=1", byAny},
	{"python with a file of holes", "f=open('f','wb'); f.seek(1<<50); f.write(b'x')", byAny},
	{"python with small writes", "import os\nwhile True: os.write(1,b'x')", byAny},
	{"python with small writes to nowhere", "import os\nf=os.open('/dev/null',os.O_WRONLY)\nwhile True: os.write(f,b'x')", byTime},
	{"python that reads itself", "import sys\nwhile True:\n try: sys.stdin.read(1)\n except Exception: pass", byAny},
	{"python with subprocesses", "import subprocess\nwhile True: subprocess.run(['python3','-c','import subprocess; subprocess.run([\"sh\",\"-c\",\"true\"])'])", byAny},
	{"python that starts itself", "open('s.py','w').write('import subprocess; subprocess.run([\"python3\",\"s.py\"])'); exec(open('s.py').read())", byAny},
	{"python with os._exit and abort", "import os; os.abort()", byCode},
	{"python that breaks its interpreter", "import ctypes", byCode},
	{"python that breaks its code", "import types\nc=(lambda:0).__code__\nexec(c.replace(co_code=bytes(range(256))*100, co_stacksize=0))", byAny},
	{"python with a socket", "import socket; s=socket.socket(); s.connect(('127.0.0.1',80))", byCode},
	{"python with many sleeps", "import time\nwhile True: time.sleep(0)", byTime},
	{"python with zip bombs", "import zlib\nd=zlib.compressobj(9); b=b''.join(d.compress(bytes(1<<20)) for _ in range(200))+d.flush()\nwhile True: zlib.decompress(b)", byAny},
	{"python with sqlite", "import sqlite3\nc=sqlite3.connect(':memory:'); c.execute('with recursive t(x) as (select 1 union all select x+1 from t) select count(*) from t').fetchall()", byAny},
	{"python with sqlite blobs", "import sqlite3\nc=sqlite3.connect(':memory:'); print(c.execute('select length(zeroblob(1000000000)), length(printf(\"%.*c\",1000000000,\"x\"))').fetchall())", byAny},
	{"python with decimals", "import decimal\ndecimal.getcontext().prec=decimal.MAX_PREC\ndecimal.Decimal(1)/3", byAny},
	{"python with int text", "import sys\nsys.set_int_max_str_digits(0)\nint('9'*10000000)", byAny},
	{"python with hashes", "import hashlib; hashlib.pbkdf2_hmac('sha256',b'x',b'y',10**12)", byAny},
	{"python with format widths", "'%1000000000d'%1; f'{1:>10000000000}'", byAny},
}

var scripts = []hostile{
	{"js loop", `for (;;) {}`, byTime},
	{"js that catches everything", `for (;;) try { for (;;) {} } catch {} finally { continue }`, byTime},
	{"js with microtasks", `(function f() { Promise.resolve().then(f) })()`, byTime},
	{"js with promises", `async function f() { await f() } f(); async function g() { for (;;) await null } g()`, byAny},
	{"js with timers", `setInterval(() => {}, 0)`, byTime},
	{"js with timers that double", `(function f() { setTimeout(f, 0); setTimeout(f, 0) })()`, byAny},
	{"js with immediates", `(function f() { setImmediate(f) })()`, byTime},
	{"js with nextTick", `(function f() { process.nextTick(f) })()`, byTime},
	{"js with Atomics.wait", `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`, byAny},
	{"js that recurs", `function f() { f() } try { f() } catch (e) { f() }`, byAny},
	{"js that recurs in catch", `function f() { try { f() } catch { f() } } f()`, byAny},
	{"js that grows", `let a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))`, byAny},
	{"js that catches memory errors", `let a = []; for (;;) try { for (;;) a.push(new Uint8Array(1 << 20).fill(1)) } catch { a = [] }`, byAny},
	{"js that doubles", `let x = "x"; for (;;) x += x`, byAny},
	{"js with a long repeat", `"x".repeat(2 ** 30).repeat(2 ** 20)`, byAny},
	{"js with a large array", `new Array(4294967295).fill(0).map(x => [x])`, byAny},
	{"js with sparse arrays", `let a = []; a[4294967294] = 1; a.sort(); a.join("x")`, byAny},
	{"js that goes back", `/(a*)*(a*)*(a*)*b/.test("a".repeat(100000)); /(a|a)*b/.test("a".repeat(100))`, byAny},
	{"js with a deep expression", `eval("(".repeat(100000) + "1" + ")".repeat(100000))`, byAny},
	{"js with deep arrays", `eval("[".repeat(1000000))`, byAny},
	{"js with deep regexps", `new RegExp("(".repeat(1000000))`, byAny},
	{"js with large counts", `new RegExp("(((a{1,65535}){1,65535}){1,65535}){1,65535}").test("a".repeat(1000))`, byAny},
	{"js with deep json", `JSON.parse("[".repeat(1000000)); `, byAny},
	{"js that makes deep json", `let x = []; for (let i = 0; i < 1000000; i++) x = [x]; JSON.stringify(x)`, byAny},
	{"js with proxies", `let p = {}; for (let i = 0; i < 1000000; i++) p = new Proxy(p, {}); p.x`, byAny},
	{"js with prototypes", `let p = {}; for (let i = 0; i < 1000000; i++) p = Object.create(p); p.x`, byAny},
	{"js with a getter that recurs", `let o = { get x() { return this.x } }; o.x`, byAny},
	{"js with toString that recurs", `let o = { toString() { return "" + o } }; "" + o`, byAny},
	{"js with generators", `function* f() { yield* f() } for (const x of f());`, byAny},
	{"js with bigint", `2n ** (2n ** 40n)`, byAny},
	{"js with bigint squares", `let x = 9n; for (;;) x *= x`, byAny},
	{"js with sort", `new Array(1e7).fill(0).map(Math.random).sort(() => Math.random() - .5)`, byAny},
	{"js with finalizers", `const r = new FinalizationRegistry(() => { for (;;); }); for (;;) r.register({}, 1)`, byAny},
	{"js with symbols", `const m = new Map(); for (let i = 0; ; i++) m.set(Symbol(i), i)`, byAny},
	{"js with output", `for (;;) console.log("x".repeat(1000))`, byOutput},
	{"js with small writes", `for (;;) process.stdout.write("x")`, byAny},
	{"js with imports of itself", `require("fs").writeFileSync("a.mjs", "await import('./a.mjs?' + Math.random())"); import("./a.mjs")`, byAny},
	{"js with children", `const { execSync } = require("child_process"); for (;;) execSync("true")`, byAny},
	{"js that exits in exit", `process.on("exit", () => { for (;;); }); process.exit(0)`, byAny},
	{"js with uncaught handlers", `process.on("uncaughtException", () => { throw 1 }); process.on("unhandledRejection", () => { throw 2 }); setInterval(() => { throw 3 }, 0)`, byAny},
	{"js with a socket", `require("net").connect(80, "127.0.0.1"); fetch("http://127.0.0.1/").then(r => console.log("reached"), e => process.exit(3))`, byAny},
}

// neighbour is a space beside the hostile one, whose commands have to go on working.
type neighbour struct {
	h     spacetest.Host
	space space.Instance
	spec  space.Spec
}

func newNeighbour(t *testing.T, h spacetest.Host) *neighbour {
	n := &neighbour{h: h, spec: h.Spec(t)}
	n.space = h.Create(t, n.spec)
	return n
}

// alive has the neighbour say so.
func (n *neighbour) alive(ctx context.Context) error {
	r, err := n.h.TryExec(ctx, n.space, spacetest.Shell(n.spec.ID, "echo alive"))
	if err != nil || r.Stdout != "alive\n" || r.Code != 0 {
		return fmt.Errorf("the neighbour: %+v, %w", r, err)
	}
	return nil
}

// endlessTime is how long what has no other end may take, hostileTime what ends by time or by another bound, and patientTime what ends by itself.
const (
	endlessTime = 100 * time.Millisecond
	hostileTime = 250 * time.Millisecond
	patientTime = 30 * time.Second
)

// overshoots collects how much too late runaways were stopped.
type overshoots struct {
	mu  sync.Mutex
	all []overshoot
}

// overshoot is how long one went on after its bound: on the wall, which its neighbours lengthen, and of processor time.
type overshoot struct {
	name      string
	wall, cpu time.Duration
}

func (o *overshoots) add(x overshoot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, x)
}

// soon is within what a runaway is to be stopped.
const soon = 5 * time.Millisecond

func (o *overshoots) log(t *testing.T) {
	if len(o.all) == 0 {
		return
	}
	of := func(figure func(overshoot) time.Duration) string {
		slices.SortFunc(o.all, func(a, b overshoot) int { return cmp.Compare(figure(b), figure(a)) })
		worst := ""
		for _, x := range o.all {
			if figure(x) > soon {
				worst += fmt.Sprintf(", %s %s", x.name, figure(x))
			}
		}
		return fmt.Sprintf("%s in the median, %s at most%s", figure(o.all[len(o.all)/2]), figure(o.all[0]), worst)
	}
	t.Logf("%d runaways were stopped by a bound: on the wall %s; of processor time %s", len(o.all), of(func(x overshoot) time.Duration { return x.wall }),
		of(func(x overshoot) time.Duration { return x.cpu }))
}

// workersMemory is the most that the worker processes of this test have ever held, in bytes; 0 where the system does not say.
func workersMemory() (most int64) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range tasks {
		raw, _ := os.ReadFile(name)
		for pid := range strings.FieldsSeq(string(raw)) {
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			for line := range bytes.Lines(status) {
				if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
					kib, _ := strconv.ParseInt(strings.Fields(string(rest))[0], 10, 64)
					most = max(most, kib<<10)
				}
			}
		}
	}
	return most
}

// besieged is a tier with a worker for each of what is hostile at once, and one for their neighbour, which has to be alive all the time.
func besieged(t *testing.T) (spacetest.Host, *neighbour) {
	t.Helper()
	h := hostOf(t, runtime.GOMAXPROCS(0)+1)
	n := newNeighbour(t, h)
	if err := n.alive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, n
}

// TestHostileScripts has scripts take what they can: a bound ends them, which is told, and neither the worker nor a neighbour is harmed.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("nearly two hundred scripts that take what they can: half a minute of both processors, which -short is not for")
	}
	h, n := besieged(t)
	var late overshoots
	t.Run("all", func(t *testing.T) {
		for _, x := range hostiles {
			hostileCase(t, h, n, &late, x, nil, "bash", "-c", x.script)
		}
		for _, x := range pythons {
			hostileCase(t, h, n, &late, x, nil, "python3", "-c", x.script)
		}
		for _, x := range scripts {
			hostileCase(t, h, n, &late, x, nil, "node", "-e", x.script)
		}
	})
	late.log(t)
	t.Logf("a worker held %d MiB at most", workersMemory()>>20)
}

func hostileCase(t *testing.T, h spacetest.Host, n *neighbour, late *overshoots, x hostile, prepare func(t *testing.T, dir string), argv ...string) {
	t.Run(x.name, func(t *testing.T) {
		t.Parallel()
		limit := patientTime
		switch x.end {
		case byTime:
			limit = endlessTime
		case byAny:
			limit = hostileTime
		}
		if argv[0] != "bash" && limit < patientTime {
			limit *= 2 // its interpreter starts first
		}
		spec := h.Spec(t)
		if prepare != nil {
			spec.Limits.DiskBytes = 64 << 20
			spec.Limits.FileBytes = 48 << 20
			prepare(t, spec.Dir)
		}
		s := h.Create(t, spec)
		during := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { during <- n.alive(ctx) }()
		r, err := h.TryExec(t.Context(), s, spacetest.Command{Space: spec.ID, Argv: argv, MS: limit.Milliseconds()})
		if e := <-during; e != nil {
			t.Errorf("meanwhile: %v", e)
		}
		cancel()
		if err != nil {
			t.Fatalf("got %v; want an end by a bound", err)
		}
		t.Logf("code %d, limit %q, timed out %t, %s and %s for its changes, gas %d, %d bytes, stderr %.200q; a worker: %d MiB", r.Code, r.Limit, r.TimedOut, r.Duration-r.Commit, r.Commit, r.Gas, len(r.Stdout), r.Stderr, workersMemory()>>20)
		if l := s.(*instance).late; r.TimedOut || r.Limit != "" && l[0] > 0 {
			t.Logf("stopped %s late, %s of processor time", l[0], l[1])
			late.add(overshoot{x.name, l[0], l[1]})
		}
		if len(r.Stdout)+len(r.Stderr) > int(spec.Limits.OutputBytes) {
			t.Errorf("it printed %d bytes", len(r.Stdout)+len(r.Stderr))
		}
		if bytes, _, err := measure(t.Context(), spec.Dir); err != nil || bytes > spec.Limits.DiskBytes {
			t.Errorf("it left %d bytes, %v", bytes, err)
		}
		switch x.end {
		case byTime:
			if !r.TimedOut {
				t.Errorf("got %+v; want an end by time", r.Exit)
			}
		case byCode:
			if r.TimedOut || r.Limit != "" && r.Code == 0 {
				t.Errorf("got %+v; want an end by itself", r.Exit)
			}
		case byAny:
		default:
			if r.Limit != x.end {
				t.Errorf("got %+v; want %s", r.Exit, x.end)
			}
		}
		if err := n.alive(t.Context()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

import sys, time, re
from pathlib import Path
from tests.bench import predicted as p
import os, tempfile
def counts(mount):
    text=open('/proc/self/mountstats').read(); part=text.split(f' mounted on {mount} ')[1].split('\ndevice ')[0]
    per=part.split('per-op statistics')[1]
    return {m[1]:int(m[2]) for m in re.finditer(r'\t\s*(\w+): (\d+)',per)}
def diff(a,b): return {k:b[k]-a.get(k,0) for k in b if b[k]-a.get(k,0)}
def pair(name,mount):
    pr=p._pairs()[name]; folder=Path(mount)
    with tempfile.TemporaryDirectory(dir=folder,prefix='predicted-') as place:
        os.sync()
        orig=p._timed; box={}
        def timed(words):
            os.sync(); a=counts(mount); f=orig(words); box['rpc']=diff(a,counts(mount)); return f
        p._timed=timed
        real=pr.measure(Path(place)); p._timed=orig
    os.sync()
    # the scenario's own: laying out and removal are counted too, so take them from a trace of the whole run
    a=counts(mount); mine=p._run_scenario(pr,folder,real.words); whole=diff(a,counts(mount))
    return real.seconds,mine,box.get('rpc',{}),whole
for job in sys.argv[1:]:
    name,mount,turns=job.split(':')
    for t in range(int(turns)):
        try: r,m,rpc,whole=pair(name,'/nfs/'+mount)
        except Exception as e: print(name,mount,'failed',repr(e),flush=True); continue
        print(f'{name:<6} {mount:<6} real {r:8.3f} scenario {m:8.3f} ratio {m/r:.2f}',flush=True)
        if t==0: print('   real    ',dict(sorted(rpc.items(),key=lambda x:-x[1]))); print('   whole run',dict(sorted(whole.items(),key=lambda x:-x[1])),flush=True)

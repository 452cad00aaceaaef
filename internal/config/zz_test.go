package config_test
import ("testing";"strings";"time";"fmt")
func TestZZ(t *testing.T){
 n:=func(f string)string{var b strings.Builder; for i:=0;b.Len()<(1<<20)-200;i++{fmt.Fprintf(&b,f,i)};return b.String()}
 for k,s:=range map[string]string{
  "unknown":n("k%d=1\n"),"custom":n("[runners.custom.a%d]\nexec='x'\n"),"customempty":n("[runners.custom.a%d]\n"),"badcustom":n("[runners.custom.A%d]\n"),"dup":n("[stop]\n#%d\n"),
  "dotted":"a"+strings.Repeat(".a",500000)+"=1", "header":"[a"+strings.Repeat(".a",250000)+"]\n"+n("k%d=1\n")[:500000-500000%8],
  "arr":"a="+strings.Repeat("[",9000)+strings.Repeat("]",9000),"inline":strings.Repeat("a={",9000)+strings.Repeat("}",9000),
  "inline1":"stop={"+strings.TrimSuffix(n("k%d=1,"),",")+"}","deny":"env.deny=["+n("'A%d',")+"]","str":"defaults.base='"+strings.Repeat("x ",500000)+"'",
  "ids":"ids.format='"+strings.Repeat("{",500000)+"'","oneline": "env={deny=["+n("'[A%d',")+"]}",
 }{ t0:=time.Now(); _,_,err:=load(t,s); e:=""; if err!=nil{e=err.Error(); if len(e)>200{e=fmt.Sprint(len(e)," bytes ",e[:200])}}; t.Log(k,len(s),time.Since(t0),e)}
}

import { compileSchema } from 'platform/schema.ts';
const t=(name:string,s:any,...values:any[])=>{const a=performance.now();const m0=process.memoryUsage().heapUsed;try{const c=compileSchema(typeof s==='string'?s:JSON.stringify(s));const ct=performance.now()-a;for(const v of values){const b=performance.now();const r=c.validate(v,'/content');const d=performance.now()-b;console.log(name,'compile',ct.toFixed(1),'validate',d.toFixed(1),r.length,JSON.stringify(r.slice(0,3)).slice(0,300), 'heap',((process.memoryUsage().heapUsed-m0)/1e6).toFixed(0))}}catch(e:any){console.log(name,'REFUSED',(performance.now()-a).toFixed(1),e.name,e.message,JSON.stringify(e.details),e.cause?.message?.slice(0,100))}};

const N=998;const four=(k:string,a:any[])=>({allOf:[0,1,2,3].map(j=>({[k]:a.slice(j*248,j*248+248)}))});
t('warm',{},1);
for (const [n,k] of Object.entries({contains:{contains:{type:'null'}},not:{not:{type:'null'}},uneval:{unevaluatedProperties:{type:'null'}}})) t(n,four('allOf',Array.from({length:N/2|0},()=>k)),Array(1000).fill(null),{a:null});
for (const [n,k] of Object.entries({uniq:{uniqueItems:true},max:{maximum:1,minimum:2,multipleOf:3},str:{maxLength:10,format:'uri'},enum:{enum:[1,2]},req:{required:['a','b','c']}})) {t(n,four('allOf',Array.from({length:N},()=>k)),Array(1000).fill(null).map((_,i)=>i),{a:null},5,'http://x'+'x'.repeat(100000));
t('oneOf '+n,four('oneOf',Array.from({length:N},()=>k)),Array(1000).fill(null).map((_,i)=>i),{a:null},5);}
t('depReq',{dependentRequired:Object.fromEntries(Array.from({length:3000},(_,i)=>['a'+i,['b']]))},{a1:1});
t('deps',{dependencies:Object.fromEntries(Array.from({length:3000},(_,i)=>['a'+i,['b']]))},{a1:1});
t('deps7',{$schema:'http://json-schema.org/draft-07/schema#',dependencies:Object.fromEntries(Array.from({length:1500},(_,i)=>['a'+i,['b','c','d','e','f','g','h','i']]))},{a1:1});
t('defs',{$defs:Object.fromEntries(Array.from({length:998},(_,i)=>['a'+i,{type:'string'}])),properties:{}},{a1:1});
t('refs',{$defs:Object.fromEntries(Array.from({length:498},(_,i)=>['a'+i,{type:'string'}])),properties:Object.fromEntries(Array.from({length:498},(_,i)=>['a'+i,{$ref:'#/$defs/a'+i}]))},{a1:1,a2:'x'});
t('wide',{type:'object',properties:Object.fromEntries(Array.from({length:998},(_,i)=>['p'+i,{type:'string',minLength:1,maxLength:10}]))},{p1:1,p2:2});
t('deepif',{if:{if:{if:{if:true,then:true},then:true},then:true},then:{type:'object'}},1);
t('pp',{patternProperties:Object.fromEntries(Array.from({length:600},(_,i)=>['^p'+i,{type:'string'}]))},{p1:1},Object.fromEntries(Array.from({length:20000},(_,i)=>['q'+i,1])));
t('rec',{allOf:[{properties:{c:{$ref:'#'}}},{properties:{c:{$ref:'#'}}}]},JSON.parse('{"c":'.repeat(60)+'1'+'}'.repeat(60)));
t('mult',{multipleOf:0.01},1e308,1e-300);
const big='é'.repeat(120000);t('len',{allOf:Array.from({length:900},()=>({maxLength:100000}))},big);
t('names',{properties:{a:{type:'object',additionalProperties:false}}},{a:{['x'.repeat(1000)]:1}});
t('many',{type:'object',properties:{xs:{items:{type:'object',required:['a']}}}},{xs:Array.from({length:30000},()=>({}))});
t('manyref',{type:'object',$defs:{x:{type:'object',required:['a']}},properties:{xs:{items:{$ref:'#/$defs/x'}}}},{xs:Array.from({length:30000},()=>({}))});
t('manyref2',{$ref:'#/$defs/r',$defs:{r:{properties:{xs:{items:{$ref:'#/$defs/x'}}}},x:{type:'object',required:['a']}}},{xs:Array.from({length:30000},()=>({}))},{xs:Array.from({length:1000},()=>({}))});

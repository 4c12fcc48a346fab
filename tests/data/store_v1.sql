BEGIN TRANSACTION;
CREATE TABLE calls (
	session_id VARCHAR(64) NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	role VARCHAR(20) NOT NULL, 
	task_id VARCHAR(200) NOT NULL, 
	status VARCHAR(20) NOT NULL, 
	begun INTEGER NOT NULL, 
	begun_at VARCHAR(40) NOT NULL, 
	result TEXT NOT NULL, 
	usage TEXT NOT NULL, 
	PRIMARY KEY (session_id, "key")
);
INSERT INTO "calls" VALUES('S','28874d6eaddd0072ab9d847179a60e848d0901c6343f9869f6d696e852bef272','model','planner','S/plan/0','settled',1,'2026-11-30T13:09:18.574070+00:00','{"a":0}','{"calls":1,"searches":0,"fetches":0,"tokens_in":100,"tokens_out":20,"cost":0.25,"seconds":1.5,"reused":0}');
INSERT INTO "calls" VALUES('S','30e0c9d78326d6eed3a03ba4e0feb92c6587bc71d81724336b10ea60b72cacc6','model','planner','S/plan/1','settled',1,'2026-11-30T13:09:18.578012+00:00','{"a":1}','{"calls":1,"searches":0,"fetches":0,"tokens_in":101,"tokens_out":20,"cost":0.25,"seconds":1.5,"reused":0}');
INSERT INTO "calls" VALUES('S','576cdad79a87d638c56264aa0a6a139eaa8d0c527288c5c650cf533e5cf968a7','model','planner','S/plan/2','begun',1,'2026-11-30T13:09:18.580524+00:00','','{}');
CREATE TABLE log (
	session_id VARCHAR(64) NOT NULL, 
	seq INTEGER NOT NULL, 
	at VARCHAR(40) NOT NULL, 
	epoch INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (session_id, seq)
);
INSERT INTO "log" VALUES('S',1,'2026-11-30T13:09:18.523879+00:00',1,'{"task_id":"S/start","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"session_started","session_id":"S","request":{"question":"How do tides make power?","depth":"standard","request_class":null,"focus_areas":[],"outline":[],"language":null,"sources":{"folders":[],"web":true,"offline":false},"provided":[],"strict":false,"gate":"never","approve_plan":false,"max_iterations":3,"owner":"local"},"started_at":"2026-01-01T00:00:00+00:00"}');
INSERT INTO "log" VALUES('S',2,'2026-11-30T13:09:18.538949+00:00',1,'{"task_id":"S/scout/search/0","usage":{"calls":0,"searches":1,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"search_done","section":"scout","query":"How do tides make power?","hits":[{"location":"https://site.test/12","title":"A page","kind":"web","snippet":"","engine":"","relevance":0.0,"source_id":"","spans":[],"headings":[],"published":""}],"answerability":{"zone":"nearest","missing_terms":[],"nearest":[],"cosine":0.0,"coverage":0.0},"rewritten":""}');
INSERT INTO "log" VALUES('S',3,'2026-11-30T13:09:18.543578+00:00',1,'{"task_id":"S/plan/0","usage":{"calls":1,"searches":0,"fetches":0,"tokens_in":10,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"plan_ready","plan":{"title":"Tides","request_class":"write_only","language":"en","sections":[{"id":"s1","title":"Part 1","weight":1.0,"queries":["query 1.0"]}],"hypotheses":[]}}');
INSERT INTO "log" VALUES('S',4,'2026-11-30T13:09:18.545634+00:00',1,'{"task_id":"S/s1/search/1.0","usage":{"calls":0,"searches":1,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"search_done","section":"s1","query":"query 1.0","hits":[{"location":"https://site.test/18","title":"A page","kind":"web","snippet":"","engine":"","relevance":0.0,"source_id":"","spans":[],"headings":[],"published":""},{"location":"https://site.test/1","title":"A page","kind":"web","snippet":"","engine":"","relevance":0.0,"source_id":"","spans":[],"headings":[],"published":""}],"answerability":{"zone":"answer","missing_terms":[],"nearest":[],"cosine":0.0,"coverage":0.0},"rewritten":""}');
INSERT INTO "log" VALUES('S',5,'2026-11-30T13:09:18.548429+00:00',1,'{"task_id":"S/s1/read/49414533c0d5","usage":{"calls":1,"searches":0,"fetches":1,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"source_read","section":"s1","location":"https://site.test/18","status":"read","reason":"","source":{"id":"49414533c0d5fb1f189aa362c2cd6154731c0b5275f0bbc733daf6ba3c430c6b","title":"A page","location":"https://site.test/18","kind":"web","fetched_at":"2026-01-01T00:00:00Z","published":"","language":"","chars":100,"injections":[]},"evidence":[{"id":"e309a64bd74","source":"49414533c0d5fb1f189aa362c2cd6154731c0b5275f0bbc733daf6ba3c430c6b","quote":"tides","start":0,"end":5,"claim":"","heading":"","page":null,"relevance":0.0,"tainted":false}]}');
INSERT INTO "log" VALUES('S',6,'2026-11-30T13:09:18.549923+00:00',1,'{"task_id":"S/s1/read/be9b9355604b","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"source_read","section":"s1","location":"https://site.test/1","status":"unavailable","reason":"time-out","source":null,"evidence":[]}');
INSERT INTO "log" VALUES('S',7,'2026-11-30T13:09:18.553353+00:00',1,'{"task_id":"S/s1/draft/1","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"draft_ready","draft":{"section":"s1","revision":1,"blocks":[{"kind":"paragraph","sentences":[{"text":"tides 0.","citations":["e309a64bd74"],"verdict":null,"reason":""},{"text":"Nobody said this.","citations":[],"verdict":null,"reason":""}],"text":"","level":0,"language":""}],"unknown_citations":[],"incomplete":false,"prompted":[]}}');
INSERT INTO "log" VALUES('S',8,'2026-11-30T13:09:18.555933+00:00',1,'{"task_id":"S/s1/ground/1","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"draft_grounded","grounding":{"section":"s1","revision":1,"verdicts":[{"verdict":"supported","reason":"because","evidence":""},{"verdict":"supported","reason":"because","evidence":""}],"coverage":1.0,"checked":true}}');
INSERT INTO "log" VALUES('S',9,'2026-11-30T13:09:18.559110+00:00',1,'{"task_id":"S/review/1","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"review_done","review":{"iteration":1,"scores":{"accuracy":0.12380196114964559,"coverage":0.12380196114964559,"clarity":0.12380196114964559,"objectivity":0.12380196114964559},"issues":[{"kind":"incomplete","severity":"medium","section":"s1","detail":"thin","fix_query":"","instruction":""}],"verdict":"QUALITY_FAIL","sections":["s1"]}}');
INSERT INTO "log" VALUES('S',10,'2026-11-30T13:09:18.560680+00:00',1,'{"task_id":"S/s1/draft/2","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"draft_ready","draft":{"section":"s1","revision":2,"blocks":[{"kind":"paragraph","sentences":[{"text":"tides 0.","citations":["e309a64bd74"],"verdict":null,"reason":""}],"text":"","level":0,"language":""}],"unknown_citations":[],"incomplete":false,"prompted":[]}}');
INSERT INTO "log" VALUES('S',11,'2026-11-30T13:09:18.562043+00:00',1,'{"task_id":"S/s1/ground/2","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"draft_grounded","grounding":{"section":"s1","revision":2,"verdicts":[{"verdict":"supported","reason":"because","evidence":""}],"coverage":1.0,"checked":true}}');
INSERT INTO "log" VALUES('S',12,'2026-11-30T13:09:18.563418+00:00',1,'{"task_id":"S/review/2","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"review_done","review":{"iteration":2,"scores":{"accuracy":0.5771029486174987,"coverage":0.5771029486174987,"clarity":0.5771029486174987,"objectivity":0.5771029486174987},"issues":[],"verdict":"QUALITY_FAIL","sections":[]}}');
INSERT INTO "log" VALUES('S',13,'2026-11-30T13:09:18.565092+00:00',1,'{"task_id":"S/summary/draft/1","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"draft_ready","draft":{"section":"summary","revision":1,"blocks":[{"kind":"paragraph","sentences":[{"text":"Nobody said this.","citations":[],"verdict":null,"reason":""}],"text":"","level":0,"language":""}],"unknown_citations":[],"incomplete":false,"prompted":[]}}');
INSERT INTO "log" VALUES('S',14,'2026-11-30T13:09:18.566633+00:00',1,'{"task_id":"S/summary/ground/1","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"draft_grounded","grounding":{"section":"summary","revision":1,"verdicts":[{"verdict":"supported","reason":"because","evidence":""}],"coverage":1.0,"checked":true}}');
INSERT INTO "log" VALUES('S',15,'2026-11-30T13:09:18.568966+00:00',1,'{"task_id":"S/format/0","usage":{"calls":0,"searches":0,"fetches":0,"tokens_in":0,"tokens_out":0,"cost":0.0,"seconds":0.0,"reused":0},"notes":[],"seconds":0.0,"kind":"report_ready","artefact":"0000000000000000000000000000000000000000000000000000000000000000","status":"quality_warning","words":0,"reason":""}');
CREATE TABLE meta (
	schema_version INTEGER NOT NULL, 
	PRIMARY KEY (schema_version)
);
INSERT INTO "meta" VALUES(1);
CREATE TABLE sessions (
	id VARCHAR(64) NOT NULL, 
	owner VARCHAR(200) NOT NULL, 
	question TEXT NOT NULL, 
	created_at VARCHAR(40) NOT NULL, 
	updated_at VARCHAR(40) NOT NULL, 
	status VARCHAR(40) NOT NULL, 
	epoch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	artefact VARCHAR(64) NOT NULL, 
	holder VARCHAR(64) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "sessions" VALUES('S','local','How do tides make power? 潮汐','2026-11-30T13:09:18.511855+00:00','2026-11-30T13:09:18.568966+00:00','quality_warning',1,15,'0000000000000000000000000000000000000000000000000000000000000000','here');
INSERT INTO "sessions" VALUES('T','local','never begun','2026-11-30T13:09:18.581196+00:00','2026-11-30T13:09:18.581196+00:00','running',0,0,'','');
CREATE INDEX ix_sessions_created_at ON sessions (created_at);
COMMIT;

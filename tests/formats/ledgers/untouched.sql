BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"discreet":1,"filters":[{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"},{"kind":"renyi","order":24.53,"total":"160651839048996926691973/302231454903657293676544"}],"leak":"3/4000000","limit":"filter","sort":"lanes"},{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"},{"kind":"renyi","order":23.26,"total":"40312010684374601081827/75557863725914323419136"}],"leak":"1/2000000","limit":"filter","sort":"lanes"},{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"},{"kind":"renyi","order":26.23,"total":"640136520151460708925315/1208925819614629174706176"}],"leak":"9/10000000","limit":"filter","sort":"lanes"},{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"}],"leak":"1/1000000","limit":"filter","sort":"basic"}],"limit":"candidates"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"not split yet":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','717608a1efd8a5d3397b2084d67624cd1a70d2d6220ecf5d6f003ba63cb8cfd9',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,0,'717608a1efd8a5d3397b2084d67624cd1a70d2d6220ecf5d6f003ba63cb8cfd9');
CREATE INDEX ledger_asked ON ledger_entries (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX ledger_answered ON ledger_entries (key) WHERE kind = 'committed';
CREATE UNIQUE INDEX ledger_settled ON ledger_entries (settles) WHERE settles IS NOT NULL;
CREATE TRIGGER ledger_never_changed BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_never_removed BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_in_order BEFORE INSERT ON ledger_entries
    WHEN NEW.number IS NOT (SELECT number + 1 FROM ledger_head) BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_head_goes_forward BEFORE UPDATE ON ledger_head
    WHEN NEW.number IS NOT OLD.number + 1 BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_head_stays BEFORE DELETE ON ledger_head BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
COMMIT;
PRAGMA application_id = 1685283700;
PRAGMA user_version = 1;

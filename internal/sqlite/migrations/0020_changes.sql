-- What a run changed since its base, as last counted: "files added deleted"; empty before that.
ALTER TABLE runs ADD COLUMN changes TEXT NOT NULL DEFAULT '';

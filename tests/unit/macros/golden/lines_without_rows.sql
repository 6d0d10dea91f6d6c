select concat(cast(x'' as string), concat_ws(',', concat('"', replace(replace('id', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('status', '\\', '\\\\'), '"', '\\"'), '"'))) as line

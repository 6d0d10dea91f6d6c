select count(*) from `shop`.`it's ``odd``` where (`id` is null or `it's ``odd``` is null)

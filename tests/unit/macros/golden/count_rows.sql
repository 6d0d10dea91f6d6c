select count(*) from `shop`.`it's ``odd```
